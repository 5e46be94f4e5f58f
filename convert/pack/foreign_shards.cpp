// SPDX-License-Identifier: Apache-2.0
#include "convert/pack/foreign_shards.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "convert/source/listing.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

struct stat status_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw IoError("cannot read", path, errno);
  return status;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

}  // namespace

std::string foreign_path(std::string_view key, std::uint64_t sample, std::string_view extension) {
  constexpr std::size_t kLongestKey = 4096;
  std::string path;
  for (std::size_t begin = 0; begin < std::min(key.size(), kLongestKey);) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == "." || part == "..") continue;
    if (!path.empty()) path += '/';
    for (const char c : part) {
      path +=
          is_control(c) ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
    }
  }
  for (const std::string_view known : {".jpg", ".jpeg", ".JPG", ".JPEG", ".png", ".PNG", ".npy"}) {
    if (path.size() <= known.size() || !path.ends_with(known)) continue;
    path.resize(path.size() - known.size());
    break;
  }
  if (path.empty() || path.size() > kLongestKey) path = fmt::format("{:08}", sample);
  return path.append(extension);
}

std::uint64_t bytes_of(const std::vector<ListedShard>& shards) {
  std::uint64_t bytes = 0;
  for (const ListedShard& shard : shards) {
    bytes = checked_add(bytes, static_cast<std::uint64_t>(status_of(shard.path).st_size));
  }
  return bytes;
}

std::string fingerprint_of(const std::vector<ListedShard>& shards) {
  std::uint32_t crc = 0;
  for (const ListedShard& shard : shards) {
    const struct stat status = status_of(shard.path);
    crc = crc32c::extend(crc, as_bytes(fmt::format("{}\n{}\n{}\n", shard.path.filename().string(),
                                                   status.st_size, mtime_ns(status))));
  }
  if (shards.front().manifest != nullptr) {
    crc = crc32c::extend(crc, as_bytes(shards.front().manifest->to_json()));
  }
  return fmt::format("crc32c:{:08x}", crc);
}

}  // namespace precache
