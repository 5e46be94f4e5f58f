// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/self_checked_json.hpp"

#include <nlohmann/json.hpp>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"

namespace precache {
namespace {

constexpr std::string_view kZeros = "00000000";
// As nlohmann::json writes a member of the outermost object with an indentation of two.
constexpr std::string_view kBefore = "\n  \"crc32c\": \"";
constexpr std::string_view kAfter = "\"\n}\n";

}  // namespace

std::string with_own_crc(nlohmann::ordered_json object) {
  object["crc32c"] = kZeros;
  std::string text = object.dump(2) + "\n";
  const std::string crc = crc32c::text(crc32c::value(as_bytes(text)));
  return text.replace(text.size() - kAfter.size() - kZeros.size(), kZeros.size(), crc);
}

std::optional<bool> has_right_own_crc(std::string_view text) {
  const std::size_t member = text.rfind(kBefore);
  if (member == std::string_view::npos) return std::nullopt;
  const std::size_t digits = member + kBefore.size();
  if (text.size() - digits != kZeros.size() + kAfter.size() || !text.ends_with(kAfter))
    return false;
  const auto expected = crc32c::parse(text.substr(digits, kZeros.size()));
  std::uint32_t crc = crc32c::value(as_bytes(text.substr(0, digits)));
  crc = crc32c::extend(crc, as_bytes(kZeros));
  crc = crc32c::extend(crc, as_bytes(text.substr(digits + kZeros.size())));
  return expected == crc;
}

}  // namespace precache
