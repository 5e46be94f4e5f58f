// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "formats/shard/shard_index.hpp"

namespace precache {

/// Reads the values of a shard's samples from the places that its index gives.
///
/// Holds references to the index and the path. `file` is always the whole file, of the index's
/// size; everything that a hostile file may claim is checked against it. Immutable, so any number
/// of threads may use one at once.
class ColumnValues {
 public:
  /// Throws CorruptData at `path` if a column runs past the end of the shard or has an unknown
  /// type, or if the type of the image column differs from the spec.
  ColumnValues(const ShardIndex& index, const std::string& path);
  ColumnValues(const ShardIndex& index, const std::filesystem::path& path)
      : ColumnValues(index, path.native()) {}
  ColumnValues(const ShardIndex& index, std::string&& path) = delete;
  ColumnValues(const ShardIndex& index, std::filesystem::path&& path) = delete;

  struct Extent {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  /// The place of sample `i`'s tensor or encoded image.  REQUIRES: i < samples.
  [[nodiscard]] Extent payload(std::uint64_t i) const;
  /// -1 if there is none. Throws CorruptData.
  [[nodiscard]] std::int64_t label(std::span<const std::byte> file, std::uint64_t i) const;
  /// Throws CorruptData, and Unsupported for tar headers as EntryCursor does.
  [[nodiscard]] std::string key(std::span<const std::byte> file, std::uint64_t i) const;
  /// The values of sample `i` in a named column, little-endian and not aligned. Borrows `file`.
  /// Throws CorruptData.  REQUIRES: `column` is an index in ShardIndex::named, and i < samples.
  [[nodiscard]] std::span<const std::byte> named(std::span<const std::byte> file,
                                                 std::size_t column, std::uint64_t i) const;
  /// Checks all checksums of a record: a TFRecord's CRCs, the checksums of a tar record's headers,
  /// and the CRCs in tar and HDF5 files that precache wrote. Throws CorruptData.
  void verify(std::span<const std::byte> file, std::uint64_t i) const;

 private:
  enum class Type { kNone, kDecimal, kVarint, kInt64, kUstar, kPax, kBytes, kUtf8, kUint32 };

  [[nodiscard]] static std::uint64_t at(const Column& column, std::uint64_t i) {
    return column.base + i * column.stride;
  }
  [[nodiscard]] Type type_of(const Column& column) const;
  void check_fits(const Column& column, std::uint64_t bytes) const;
  void check_named() const;
  void verify_tfrecord(std::span<const std::byte> file, std::uint64_t offset,
                       std::uint64_t i) const;
  /// Checks the tar entries from `begin` to `end`; one of them must contain `last`.
  void verify_entries(std::span<const std::byte> file, std::uint64_t begin, std::uint64_t end,
                      std::uint64_t last, std::uint64_t i) const;
  void verify_row(std::span<const std::byte> file, std::uint64_t i) const;
  [[nodiscard]] std::span<const std::byte> rest(std::span<const std::byte> file,
                                                std::uint64_t offset) const;

  const ShardIndex* index_;
  const std::string* path_;
  std::uint64_t tensor_bytes_;
  Type label_;
  Type key_;
  Type crc32c_;
};

}  // namespace precache
