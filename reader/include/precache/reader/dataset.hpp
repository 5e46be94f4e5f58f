// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/dtype.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/formats/recipe.hpp"
#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/column_rows.hpp"
#include "precache/reader/typed_rows.hpp"

namespace precache {

class MappedShard;
class ShardSet;

/// How to open a dataset.
struct OpenOptions {
  /// The spec of the tensors, for shards that do not contain it (TFRecords of raw bytes without a
  /// manifest). Opening shards that contain another spec throws InvalidArgument.
  std::optional<TensorSpec> spec;
  /// The number of shards that are kept mapped and open; views that are held come on top. 0: a
  /// quarter of the process's limit of descriptors, at most 1024.
  std::size_t max_open_shards = 0;
  /// Check each record with its CRC as it is read. All TFRecords have CRCs; tar and HDF5 shards
  /// have them if precache wrote them. In other tar files, only the checksums of headers are
  /// checked.
  bool verify_on_read = false;
  /// Turn SIGBUS on mapped shards (a shard was truncated, a disk fails) into exceptions. Without
  /// this, SIGBUS ends the process, like any program that maps files.
  bool handle_bus_errors = true;
  /// The image and the label of shards without a manifest: the extension of a file in a tar, a
  /// feature of a TFRecord, a dataset of an HDF5 file. Empty: found by the usual names.
  std::string image_key;
  std::string label_key;
  /// Ignore the labels of shards without a manifest.
  bool without_labels = false;
  /// The number of threads that scan shards without a manifest. 0: all that the process may use.
  unsigned scan_threads = 0;
  /// The `precache` command. It reads HDF5 files without a manifest in a separate process, because
  /// crafted files can crash the HDF5 library. Empty: the command on PATH.
  std::filesystem::path helper;
};

/// Keeps a shard mapped. Bytes that were read before check() returns are good.
///
/// Copies are cheap and keep the same mapping. Any thread may use one.
class Lease {
 public:
  /// Throws CorruptData if the shard was truncated or written to, or if reading failed.
  void check() const;

 private:
  friend class Dataset;
  friend class Sample;
  explicit Lease(std::shared_ptr<const MappedShard> shard) : shard_(std::move(shard)) {}
  std::shared_ptr<const MappedShard> shard_;  // none for empty rows
};

/// A view of one sample in its mapped shard.
///
/// Its bytes stay valid while the sample or a copy of its lease exists. A view of a temporary
/// sample does not compile:
///
///     const Sample sample = dataset[0];
///     use(sample.as<std::uint8_t>());  // dataset[0].as<...>() would dangle
class Sample {
 public:
  /// The tensor or the encoded image, in read-only memory.
  [[nodiscard]] std::span<const std::byte> bytes() const& { return bytes_; }
  std::span<const std::byte> bytes() const&& = delete;
  /// The elements of the tensor. Throws InvalidArgument if their type is not T, Unsupported if the
  /// sample is not a tensor or its address is not aligned for T.
  template <TensorElement T>
  [[nodiscard]] std::span<const T> as() const& {
    check_elements(kDTypeOf<T>);
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <TensorElement T>
  std::span<const T> as() const&& = delete;
  /// -1 if the sample has none.
  [[nodiscard]] std::int64_t label() const { return label_; }
  /// Reads the key from the shard. Throws CorruptData.
  [[nodiscard]] std::string key() const;
  /// The values of a named column, little-endian and at any address, in read-only memory. Throws
  /// InvalidArgument if the dataset does not have it, CorruptData.
  [[nodiscard]] std::span<const std::byte> column_bytes(std::string_view name) const&;
  std::span<const std::byte> column_bytes(std::string_view name) const&& = delete;
  /// A copy of them. Also throws InvalidArgument if they have another type.
  template <ColumnElement T>
  [[nodiscard]] std::vector<T> column(std::string_view name) const {
    check_column(name, kValueTypeOf<T>);
    const std::span<const std::byte> bytes = column_bytes(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    lease_.check();
    return values;
  }
  /// Keeps the bytes valid even when the sample is gone.
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
  void check_column(std::string_view name, ValueType asked) const;

  std::span<const std::byte> bytes_;
  std::int64_t label_;
  Lease lease_;
  std::shared_ptr<const ShardSet> shards_;
  std::uint64_t index_;
};

/// A view of the tensors of neighbouring samples: row i is at `data() + i * stride_bytes()`.
///
/// The memory is read-only and stays valid while the rows or a copy of their lease exist. Views of
/// temporary rows do not compile.
class Rows {
 public:
  /// The number of rows.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// From the beginning of a row to that of the next; 0 if there are no rows.
  [[nodiscard]] std::size_t stride_bytes() const { return stride_bytes_; }
  /// The first row; null if there are no rows.
  [[nodiscard]] const std::byte* data() const& { return data_; }
  const std::byte* data() const&& = delete;
  /// REQUIRES: i < size().
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const& {
    return {data_ + i * stride_bytes_, spec_.size_bytes()};
  }
  std::span<const std::byte> operator[](std::size_t i) const&& = delete;
  /// The elements of every row. Throws InvalidArgument if their type is not T, Unsupported if a row
  /// is not aligned for T.
  template <TensorElement T>
  [[nodiscard]] TypedRows<const T> as() const& {
    return {spec_, data_, count_, stride_bytes_};
  }
  template <TensorElement T>
  TypedRows<const T> as() const&& = delete;
  /// Keeps the memory valid even when the rows are gone.
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

/// The samples of one or more shards, in the order of the shards.
///
/// Copies are cheap and refer to the same dataset. Any number of threads may use one at once.
class Dataset {
 public:
  /// Opens a dataset folder, a shard, or several: `path` may be a pattern (`*`, `?`, `[a-z]`,
  /// `{000000..000012}`, `{a,b}`, and `@000012` for `{000000..000012}`). The `dataset.json` next
  /// to shards describes them; shards without one, such as third-party files, are scanned once.
  ///
  /// `split` names one of a folder's splits; empty: the only one, else `train`. Throws IoError,
  /// CorruptData, Unsupported, and InvalidArgument if no split or file matches.
  [[nodiscard]] static Dataset open(const std::filesystem::path& path, std::string_view split = {},
                                    const OpenOptions& options = {});
  /// Opens these shards, in this order.
  [[nodiscard]] static Dataset open(const std::vector<std::filesystem::path>& shards,
                                    const OpenOptions& options = {});

  /// The number of samples of all shards.
  [[nodiscard]] std::uint64_t size() const;
  /// The number of shards, empty ones included.
  [[nodiscard]] std::size_t shard_count() const;
  /// True if every sample is a tensor of the same spec.
  [[nodiscard]] bool has_spec() const;
  /// Throws Unsupported, with the reason, if samples are not tensors of one spec.
  [[nodiscard]] TensorSpec spec() const;
  /// Class names by label; empty if the shards have none.
  [[nodiscard]] const std::vector<std::string>& classes() const&;
  [[nodiscard]] std::vector<std::string> classes() && { return classes(); }
  /// How the tensors were made; empty if the shards do not say so, or not all in the same way.
  [[nodiscard]] const StoredRecipe& recipe() const&;
  [[nodiscard]] StoredRecipe recipe() && { return recipe(); }
  /// The named columns next to image, label and key; none if the shards differ in them.
  [[nodiscard]] std::span<const NamedColumn> columns() const&;
  std::span<const NamedColumn> columns() const&& = delete;

  /// Throws InvalidArgument if there is no such sample; IoError or CorruptData if its shard cannot
  /// be read or the dataset was replaced since it was opened.
  [[nodiscard]] Sample operator[](std::uint64_t index) const;
  /// Throws the exceptions of operator[]; InvalidArgument if the rows are not all in one shard (see
  /// contiguous_rows), Unsupported if they are not tensors at equal distances.
  [[nodiscard]] Rows rows(std::uint64_t first, std::uint64_t count) const;
  /// The number of rows from `first` to the end of its shard.
  [[nodiscard]] std::uint64_t contiguous_rows(std::uint64_t first) const;

 private:
  friend class Loader;
  friend class DeviceLoader;
  friend Dataset open_dataset(std::shared_ptr<const ShardSet> shards);
  explicit Dataset(std::shared_ptr<const ShardSet> shards) : shards_(std::move(shards)) {}
  std::shared_ptr<const ShardSet> shards_;
};

}  // namespace precache
