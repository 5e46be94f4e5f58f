// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  /// Of the named columns of the split, in their order.
  std::vector<Column> named{};
  bool operator==(const ShardColumns&) const = default;
};

/// Whether image, label, key and CRCs are at the same places. Scans of tar and TFRecord shards find
/// no named columns.
[[nodiscard]] inline bool have_same_places(const ShardColumns& a, const ShardColumns& b) {
  return a.image == b.image && a.label == b.label && a.key == b.key && a.crc32c == b.crc32c;
}

/// The columns of one shard. Copies share them, so that a dataset of many equal shards has them
/// once; edit() makes a copy independent.
class SharedColumns {
 public:
  SharedColumns() : columns_(none()) {}
  SharedColumns(ShardColumns columns)  // NOLINT(google-explicit-constructor): they are the same
      : columns_(std::make_shared<const ShardColumns>(std::move(columns))) {}

  [[nodiscard]] const ShardColumns& operator*() const { return *columns_; }
  [[nodiscard]] const ShardColumns* operator->() const { return columns_.get(); }
  /// Borrowed until the next edit() or assignment.
  [[nodiscard]] ShardColumns& edit() {
    auto own = std::make_shared<ShardColumns>(*columns_);
    columns_ = own;
    return *own;
  }
  friend bool operator==(const SharedColumns& a, const SharedColumns& b) {
    return a.columns_ == b.columns_ || *a == *b;
  }

 private:
  static const std::shared_ptr<const ShardColumns>& none() {
    static const auto kNone = std::make_shared<const ShardColumns>();
    return kNone;
  }

  std::shared_ptr<const ShardColumns> columns_;
};

}  // namespace precache
