// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/shard/scan.hpp"
#ifdef PRECACHE_WITH_HDF5
#include "formats/hdf5/hdf5_readers.hpp"
#endif
#include "tests/support/bytes.hpp"

namespace precache::test {

inline std::string key_of(const ShardIndex& index, std::size_t i) {
  return index.keys.substr(index.places[i].key_begin, index.places[i].key_bytes);
}

/// True if all offsets of an index are within a file of this size.
inline bool is_inside(const ShardIndex& index, std::uint64_t size) {
  const auto fits = [&](std::uint64_t offset, std::uint64_t bytes) {
    return offset <= size && bytes <= size - offset;
  };
  for (const SampleLocation& place : index.places) {
    if (!fits(place.record, 0) || !fits(place.payload, place.payload_bytes)) return false;
    if (place.key_begin + place.key_bytes > index.keys.size()) return false;
  }
  if (!index.places.empty()) return index.places.size() == index.samples;
  if (index.samples == 0) return true;
  if (!index.spec) return false;
  const auto column_fits = [&](const Column& column, std::uint64_t bytes) {
    return column.type.empty() || fits(column.base + (index.samples - 1) * column.stride, bytes);
  };
  return column_fits(index.columns->image, index.spec->size_bytes()) &&
         column_fits(index.columns->label, 1) && column_fits(index.columns->key, 1);
}

/// scan_shard() for a file that need not exist: HDF5 is scanned in this process.
inline ShardIndex scan_bytes(std::span<const std::byte> bytes, const std::filesystem::path& path) {
#ifdef PRECACHE_WITH_HDF5
  if (detect_format(bytes, path) == Format::kHdf5) return hdf5::scan(bytes, path);
#endif
  return scan_shard(bytes, path);
}

inline ShardIndex scan_text(const std::string& text, const std::filesystem::path& path) {
  return scan_bytes(bytes_of(text), path);
}

}  // namespace precache::test
