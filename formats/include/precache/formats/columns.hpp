// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace precache {

/// Where one value of every record lies: record i's is at `base + i * stride`.
struct Column {
  std::uint64_t base = 0;
  std::uint64_t stride = 0;
  /// How the bytes there are to be read; docs/formats/manifest.md lists the types. Empty: there is
  /// no such column, labels are -1 and keys empty.
  std::string type;
  bool operator==(const Column&) const = default;
};

/// A whole shard's layout. Random access needs nothing else.
struct ShardColumns {
  Column image;
  Column label;
  Column key;
  /// Of HDF5, of all values of the record; records of tar and TFRecord have CRCs in them.
  Column crc32c{};
  bool operator==(const ShardColumns&) const = default;
};

}  // namespace precache
