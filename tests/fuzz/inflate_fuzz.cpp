// SPDX-License-Identifier: Apache-2.0
// A gzip or zlib file. Unpacking it in one piece and in many
// must give the same result.
#include <algorithm>
#include <cstdlib>

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/inflate.hpp"
#include "precache/formats/error.hpp"

namespace {

using namespace precache;
using Bytes = std::span<const std::byte>;

struct TooMuch {};  // a small file may unpack to a thousand times its size

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
    // The amount unpacked before the damage depends on the pieces.
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
