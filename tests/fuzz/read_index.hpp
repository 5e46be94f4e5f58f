// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>

#include "formats/shard/column_values.hpp"
#include "precache/formats/error.hpp"
#include "tests/fuzz/expect.hpp"

namespace precache::fuzz {

/// Calls a function that may refuse the file with one of the errors for that.
template <typename Call>
void may_refuse(const Call& call) {
  try {
    call();
  } catch (const CorruptData&) {
  } catch (const Unsupported&) {
  }
}

/// The same for a source of a build, which may also be incomplete.
template <typename Call>
void may_refuse_source(const Call& call) {
  may_refuse([&] {
    try {
      call();
    } catch (const InvalidArgument&) {
    }
  });
}

/// The result of `scan`; none if it refuses the file.
template <typename Scan>
std::optional<ShardIndex> scanned(const Scan& scan) {
  std::optional<ShardIndex> index;
  may_refuse([&] { index = scan(); });
  return index;
}

/// Reads everything that a reader of the shard would: payload, label, key, checksums.
inline void read_all(const std::optional<ShardIndex>& found, std::span<const std::byte> file) {
  constexpr std::uint64_t kMostSamples = 256;  // further samples are similar
  if (!found) return;
  const ShardIndex& index = *found;
  expect(index.bytes == file.size(), "the index knows the size of the file");
  expect(index.samples <= file.size(), "there are no more samples than bytes");
  expect(index.places.empty() || index.places.size() == index.samples, "each sample has a place");
  const std::filesystem::path path = "fuzz";
  const ColumnValues values(index, path);  // must not throw: a scan returns only readable indexes
  for (std::uint64_t i = 0; i < std::min(index.samples, kMostSamples); ++i) {
    const auto [offset, bytes] = values.payload(i);
    expect(offset <= file.size() && bytes <= file.size() - offset, "a payload lies in the file");
    expect(!index.spec || bytes == index.spec->size_bytes(), "a tensor has its size");
    touch(file.subspan(offset, bytes));
    may_refuse([&] { (void)values.label(file, i); });
    may_refuse([&] { (void)values.key(file, i); });
    may_refuse([&] { values.verify(file, i); });
  }
}

}  // namespace precache::fuzz
