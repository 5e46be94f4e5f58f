// SPDX-License-Identifier: Apache-2.0
// A gzip or zlib file: unpacked in one piece and in many, it comes to the same end.
#include <algorithm>
#include <cstdlib>

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/inflate.hpp"
#include "precache/formats/error.hpp"

namespace {

using namespace precache;
using Bytes = std::span<const std::byte>;

struct TooMuch {};  // a small file may unpack to a thousand times as much

struct Outcome {
  std::uint32_t crc = 0;
  std::uint64_t bytes = 0;
  bool is_damaged = false;
  bool operator==(const Outcome&) const = default;
};

Outcome unpack(Bytes file, std::size_t piece) {
  constexpr std::uint64_t kMost = 1 << 20;
  Outcome outcome;
  Inflater inflater("fuzz.gz");
  try {
    for (; !file.empty(); file = file.subspan(std::min(piece, file.size()))) {
      inflater.feed(file.first(std::min(piece, file.size())), [&](Bytes bytes) {
        outcome.crc = crc32c::extend(outcome.crc, bytes);
        outcome.bytes += bytes.size();
        if (outcome.bytes > kMost) throw TooMuch();
      });
    }
    inflater.finish();
  } catch (const CorruptData&) {
    // How much came out before the damage is up to the pieces.
    return {.is_damaged = true};
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto file = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    if (unpack(file, 1 + data[0] % 64) != unpack(file, std::max<std::size_t>(file.size(), 1))) {
      std::abort();
    }
  } catch (const TooMuch&) {
  }
  return 0;
}
