// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace precache {

/// The place of one value in all records: that of record i is at `base + i * stride`.
struct Column {
  std::uint64_t base = 0;
  std::uint64_t stride = 0;
  /// The encoding of the values; docs/formats/manifest.md lists the types. Empty: there is no such
  /// column, labels are -1 and keys empty.
  std::string type;
  bool operator==(const Column&) const = default;
};

/// The places of all values of a shard. Random access needs nothing else.
struct ShardColumns {
  Column image;
  Column label;
  Column key;
  /// Only in HDF5: the CRC of all values of a record. Records of tar and TFRecord contain their
  /// CRCs.
  Column crc32c{};
  bool operator==(const ShardColumns&) const = default;
};

}  // namespace precache
