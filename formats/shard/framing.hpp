// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "precache/formats/columns.hpp"
#include "precache/formats/format.hpp"
#include "precache/formats/name_limits.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// The values of a record next to its tensor.
struct SampleName {
  std::string key;
  std::int64_t label = -1;
  /// Of the named columns, one after another; borrowed.
  std::span<const std::byte> values{};
};

/// A record that has been written.
struct WrittenRecord {
  SampleName name;
  std::uint32_t crc32c = 0;  // as frame() returned it
};

/// The bytes of a shard before and after its records.
struct Envelope {
  std::vector<std::byte> prologue;
  std::vector<std::byte> epilogue;
};

/// Makes records of equal size in one format: record i is the `record_bytes()` bytes at
/// `records_base() + i * record_bytes()`, between a prologue and an epilogue.
///
/// Immutable, so any number of threads may use one at once.
class Framing {
 public:
  virtual ~Framing() = default;

  [[nodiscard]] std::uint64_t records_base() const { return records_base_; }
  [[nodiscard]] std::uint64_t record_bytes() const { return record_bytes_; }
  /// The offset of the tensor in a record.
  [[nodiscard]] std::uint64_t tensor_offset() const { return tensor_offset_; }
  /// The columns next to image, label and key.
  [[nodiscard]] const std::vector<NamedColumn>& named() const { return named_; }
  /// The size of SampleName::values.
  [[nodiscard]] std::uint64_t values_bytes() const { return values_bytes_; }
  /// Whether envelope() needs the values too: the format does not have them in its records.
  [[nodiscard]] virtual bool keeps_values() const { return false; }

  /// Completes a record whose tensor is in place: writes every byte around it. Returns the CRC-32C
  /// of the record.  REQUIRES: `sample.values` has values_bytes() bytes. The caller passes the CRC
  /// of the tensor because it knows it before it copies the tensor: damage in between then does not
  /// get a matching CRC.
  virtual std::uint32_t frame(std::span<std::byte> record, const SampleName& sample,
                              std::uint32_t tensor_crc) const = 0;

  /// The rest of a shard with these records, in this order. May create a temporary file in
  /// `scratch_folder`.
  [[nodiscard]] virtual Envelope envelope(std::span<const WrittenRecord> records,
                                          const std::filesystem::path& scratch_folder) const = 0;
  [[nodiscard]] virtual ShardColumns columns(std::uint64_t samples) const = 0;
  /// The size of a whole shard, or a little more: only the HDF5 library knows how much space many
  /// class names take.
  [[nodiscard]] virtual std::uint64_t shard_bytes(std::uint64_t samples) const = 0;

 protected:
  /// Throws InvalidArgument if the columns are not valid.
  explicit Framing(std::vector<NamedColumn> named);

  std::vector<NamedColumn> named_;
  std::uint64_t values_bytes_ = 0;
  std::uint64_t records_base_ = 0;
  std::uint64_t record_bytes_ = 0;
  std::uint64_t tensor_offset_ = 0;
};

/// Throws InvalidArgument if the names or the tensor are too large for the format, and Unsupported
/// for HDF5: use make_hdf5_framing().
[[nodiscard]] std::unique_ptr<const Framing> make_framing(
    Format format, const TensorSpec& spec, const NameLimits& limits,
    const std::vector<NamedColumn>& named = {});

// The formats that make_framing() chooses from.
[[nodiscard]] std::unique_ptr<const Framing> make_tar_framing(
    const TensorSpec& spec, const NameLimits& limits, const std::vector<NamedColumn>& named);
[[nodiscard]] std::unique_ptr<const Framing> make_tfrecord_framing(
    const TensorSpec& spec, const NameLimits& limits, const std::vector<NamedColumn>& named);

}  // namespace precache
