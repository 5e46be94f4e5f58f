// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/tensor_spec.hpp"

namespace precache {

class MappedShard;
class ShardSet;

struct OpenOptions {
  /// What the tensors are, for shards that do not say (TFRecords of raw bytes without a manifest).
  /// Opening those that say something else throws InvalidArgument.
  std::optional<TensorSpec> spec;
  /// Mappings and file descriptors that are kept open; views that are held count on top. 0: a
  /// quarter of the descriptors that the process may have, at most 1024.
  std::size_t max_open_shards = 0;
  /// Check each record as it is read, by the CRC that it carries: all TFRecords have one, tar and
  /// HDF5 shards if precache wrote them. Of other tars, the checksums of headers are checked.
  bool verify_on_read = false;
  /// Turn SIGBUS on our mappings (a shard was cut, a disk fails) into exceptions. A process in
  /// which no dataset was opened with this is ended by it, as is any program that maps files.
  bool handle_bus_errors = true;
  /// What of shards without a manifest is the image, and what the label: the ending of a file in a
  /// tar, a feature of a TFRecord, a dataset of an HDF5 file. Empty: found by its usual names.
  std::string image_key;
  std::string label_key;
  /// Samples of shards without a manifest have no labels, whatever is there.
  bool without_labels = false;
  /// Threads that scan shards without a manifest. 0: as many as the machine has.
  unsigned scan_threads = 0;
  /// The `precache` command, which reads HDF5 files without a manifest in a process of its own: the
  /// HDF5 library has memory faults on files that were made for that. Empty: the one on PATH.
  std::filesystem::path helper;
};

/// Keeps a mapping alive. Whatever was read through it is good if check() returns.
class Lease {
 public:
  explicit Lease(std::shared_ptr<const MappedShard> shard) : shard_(std::move(shard)) {}
  /// Throws CorruptData if the shard was cut, written to or could not be read since it was opened.
  void check() const;

 private:
  friend class Sample;
  std::shared_ptr<const MappedShard> shard_;  // none: nothing to keep
};

/// One sample, as it lies in its shard. Its bytes stay where they are while it, or a copy of its
/// lease, lives.
class Sample {
 public:
  /// The tensor, or the encoded image; read-only memory.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  /// -1 where there is none.
  [[nodiscard]] std::int64_t label() const { return label_; }
  /// Read from the shard when asked for. Throws CorruptData.
  [[nodiscard]] std::string key() const;
  [[nodiscard]] const Lease& lease() const { return lease_; }

 private:
  friend class Dataset;
  Sample(std::span<const std::byte> bytes, std::int64_t label, Lease lease,
         std::shared_ptr<const ShardSet> shards, std::uint64_t index)
      : bytes_(bytes),
        label_(label),
        lease_(std::move(lease)),
        shards_(std::move(shards)),
        index_(index) {}

  std::span<const std::byte> bytes_;
  std::int64_t label_;
  Lease lease_;
  std::shared_ptr<const ShardSet> shards_;
  std::uint64_t index_;
};

/// Tensors of neighbouring samples: row i lies at `data() + i * stride_bytes()`. Read-only memory
/// that stays while this, or a copy of its lease, lives.
class Rows {
 public:
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::size_t stride_bytes() const { return stride_bytes_; }
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const {
    return {data_ + i * stride_bytes_, row_bytes_};
  }
  [[nodiscard]] const Lease& lease() const { return lease_; }

 private:
  friend class Dataset;
  Rows(const std::byte* data, std::size_t count, std::size_t stride_bytes, std::size_t row_bytes,
       Lease lease)
      : data_(data),
        count_(count),
        stride_bytes_(stride_bytes),
        row_bytes_(row_bytes),
        lease_(std::move(lease)) {}

  const std::byte* data_;
  std::size_t count_;
  std::size_t stride_bytes_;
  std::size_t row_bytes_;
  Lease lease_;
};

/// All samples of some shards, in the order of the shards.
///
/// A handle: copies are cheap and mean the same dataset. Any number of threads may use one at once.
class Dataset {
 public:
  /// Opens a dataset folder, a shard, or several: `path` may be a pattern (`*`, `?`, `[a-z]`,
  /// `{000000..000012}`, `{a,b}`, and `@000012` for `{000000..000012}`). Shards that a
  /// `dataset.json` beside them lists are opened by it; others, of whatever origin, are scanned
  /// once.
  ///
  /// `split` names one of a folder's splits; empty: its only one, else `train`. Throws IoError,
  /// CorruptData, Unsupported, and InvalidArgument for a split or pattern that names nothing.
  [[nodiscard]] static Dataset open(const std::filesystem::path& path, std::string_view split = {},
                                    const OpenOptions& options = {});
  /// Several shards, in this order.
  [[nodiscard]] static Dataset open(const std::vector<std::filesystem::path>& shards,
                                    const OpenOptions& options = {});

  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::size_t shard_count() const;
  /// Whether every sample is a tensor of the same spec.
  [[nodiscard]] bool has_spec() const;
  /// Throws Unsupported, with the reason, if samples are not tensors of one spec.
  [[nodiscard]] const TensorSpec& spec() const;
  /// Class names by label; empty where the shards do not say.
  [[nodiscard]] const std::vector<std::string>& classes() const;

  /// Throws InvalidArgument if there is no such sample, IoError or CorruptData if its shard cannot
  /// be read, or the dataset was replaced since it was opened.
  [[nodiscard]] Sample operator[](std::uint64_t index) const;
  /// Throws as operator[] does; InvalidArgument if the rows are not all in one shard (see
  /// contiguous_rows), Unsupported if they are no tensors or do not lie at equal distances.
  [[nodiscard]] Rows rows(std::uint64_t first, std::uint64_t count) const;
  /// How many rows from `first` on lie in one shard.
  [[nodiscard]] std::uint64_t contiguous_rows(std::uint64_t first) const;

 private:
  friend class Loader;
  friend class DeviceLoader;
  explicit Dataset(std::shared_ptr<const ShardSet> shards) : shards_(std::move(shards)) {}
  std::shared_ptr<const ShardSet> shards_;
};

}  // namespace precache
