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

#include "precache/formats/dtype.hpp"
#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/typed_rows.hpp"

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
  /// Threads that scan shards without a manifest. 0: as many as the process may use.
  unsigned scan_threads = 0;
  /// The `precache` command, which reads HDF5 files without a manifest in a process of its own: the
  /// HDF5 library has memory faults on files that were made for that. Empty: the one on PATH.
  std::filesystem::path helper;
};

/// Keeps a shard's memory mapped. Bytes that were read through it are good if check() returns.
/// Copies are cheap and keep the same mapping; any thread may use one.
class Lease {
 public:
  /// Throws CorruptData if the shard was cut, written to or could not be read since it was opened.
  void check() const;

 private:
  friend class Dataset;
  friend class Sample;
  explicit Lease(std::shared_ptr<const MappedShard> shard) : shard_(std::move(shard)) {}
  std::shared_ptr<const MappedShard> shard_;  // none: nothing to keep
};

/// One sample, as it lies in its shard. Its bytes stay valid while it, or a copy of its lease,
/// lives; a view of a temporary sample does not compile:
///
///     const Sample sample = dataset[0];
///     use(sample.as<std::uint8_t>());  // dataset[0].as<...>() would dangle
class Sample {
 public:
  /// The tensor, or the encoded image; read-only memory.
  [[nodiscard]] std::span<const std::byte> bytes() const& { return bytes_; }
  std::span<const std::byte> bytes() const&& = delete;
  /// The tensor's elements. Throws InvalidArgument if they are not of type T, Unsupported if the
  /// sample is not a tensor or the shard has it at an address that is not aligned for T.
  template <TensorElement T>
  [[nodiscard]] std::span<const T> as() const& {
    check_elements(kDTypeOf<T>);
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <TensorElement T>
  std::span<const T> as() const&& = delete;
  /// -1 where there is none.
  [[nodiscard]] std::int64_t label() const { return label_; }
  /// Reads the key from the shard. Throws CorruptData.
  [[nodiscard]] std::string key() const;
  [[nodiscard]] const Lease& lease() const& { return lease_; }
  [[nodiscard]] Lease lease() && { return std::move(lease_); }

 private:
  friend class Dataset;
  Sample(std::span<const std::byte> bytes, std::int64_t label, Lease lease,
         std::shared_ptr<const ShardSet> shards, std::uint64_t index)
      : bytes_(bytes),
        label_(label),
        lease_(std::move(lease)),
        shards_(std::move(shards)),
        index_(index) {}
  void check_elements(DType asked) const;

  std::span<const std::byte> bytes_;
  std::int64_t label_;
  Lease lease_;
  std::shared_ptr<const ShardSet> shards_;
  std::uint64_t index_;
};

/// Tensors of neighbouring samples: row i lies at `data() + i * stride_bytes()`. Read-only memory
/// that stays valid while this, or a copy of its lease, lives; views of temporary rows do not
/// compile.
class Rows {
 public:
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::size_t stride_bytes() const { return stride_bytes_; }
  [[nodiscard]] const std::byte* data() const& { return data_; }
  const std::byte* data() const&& = delete;
  /// REQUIRES: i < size().
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const& {
    return {data_ + i * stride_bytes_, spec_.size_bytes()};
  }
  std::span<const std::byte> operator[](std::size_t i) const&& = delete;
  /// The elements of every row. Throws InvalidArgument if they are not of type T, Unsupported if
  /// the shard has a row at an address that is not aligned for T.
  template <TensorElement T>
  [[nodiscard]] TypedRows<const T> as() const& {
    return {spec_, data_, count_, stride_bytes_};
  }
  template <TensorElement T>
  TypedRows<const T> as() const&& = delete;
  [[nodiscard]] const Lease& lease() const& { return lease_; }
  [[nodiscard]] Lease lease() && { return std::move(lease_); }

 private:
  friend class Dataset;
  Rows(const TensorSpec& spec, const std::byte* data, std::size_t count, std::size_t stride_bytes,
       Lease lease)
      : spec_(spec),
        data_(data),
        count_(count),
        stride_bytes_(stride_bytes),
        lease_(std::move(lease)) {}

  TensorSpec spec_;
  const std::byte* data_;
  std::size_t count_;
  std::size_t stride_bytes_;
  Lease lease_;
};

/// All samples of some shards, in the order of the shards.
///
/// A handle: copies are cheap and mean the same dataset. Any number of threads may use one at once.
class Dataset {
 public:
  /// Opens a dataset folder, a shard, or several: `path` may be a pattern (`*`, `?`, `[a-z]`,
  /// `{000000..000012}`, `{a,b}`, and `@000012` for `{000000..000012}`). Shards that a
  /// `dataset.json` next to them lists are opened by it; others, of whatever origin, are scanned
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
  [[nodiscard]] TensorSpec spec() const;
  /// Class names by label; empty where the shards do not say.
  [[nodiscard]] const std::vector<std::string>& classes() const&;
  [[nodiscard]] std::vector<std::string> classes() && { return classes(); }

  /// Throws InvalidArgument if there is no such sample, IoError or CorruptData if its shard cannot
  /// be read, or the dataset was replaced since it was opened.
  [[nodiscard]] Sample operator[](std::uint64_t index) const;
  /// Throws as operator[] does; InvalidArgument if the rows are not all in one shard (see
  /// contiguous_rows), Unsupported if they are not tensors or do not lie at equal distances.
  [[nodiscard]] Rows rows(std::uint64_t first, std::uint64_t count) const;
  /// How many rows from `first` on lie in one shard.
  [[nodiscard]] std::uint64_t contiguous_rows(std::uint64_t first) const;

 private:
  friend class Loader;
  friend class DeviceLoader;
  friend Dataset open_dataset(std::shared_ptr<const ShardSet> shards);
  explicit Dataset(std::shared_ptr<const ShardSet> shards) : shards_(std::move(shards)) {}
  std::shared_ptr<const ShardSet> shards_;
};

}  // namespace precache
