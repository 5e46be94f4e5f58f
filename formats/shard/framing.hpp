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
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// What varies from record to record beside the tensor.
struct SampleName {
  std::string key;
  std::int64_t label = -1;
};

/// A record that is in place.
struct WrittenRecord {
  SampleName name;
  std::uint32_t crc32c = 0;  // what frame() returned
};

/// The bytes of a shard before and after its records.
struct Envelope {
  std::vector<std::byte> prologue;
  std::vector<std::byte> epilogue;
};

/// How one format makes equal records of samples: record i is the `record_bytes()` bytes at
/// `records_base() + i * record_bytes()`, between a prologue and an epilogue.
///
/// Immutable, so any number of threads may use one at once.
class Framing {
 public:
  virtual ~Framing() = default;

  [[nodiscard]] std::uint64_t records_base() const { return records_base_; }
  [[nodiscard]] std::uint64_t record_bytes() const { return record_bytes_; }
  /// Where in a record its tensor lies.
  [[nodiscard]] std::uint64_t tensor_offset() const { return tensor_offset_; }

  /// Completes a record whose tensor is in place: writes every byte around it. Returns the CRC-32C
  /// of the record. That of the tensor is asked for and not computed, as who copies one knows it:
  /// what is damaged in between does not get a CRC that hides it.
  virtual std::uint32_t frame(std::span<std::byte> record, const SampleName& sample,
                              std::uint32_t tensor_crc) const = 0;

  /// The rest of a shard that holds these records, in this order. A temporary file may be made in
  /// `scratch_folder`.
  [[nodiscard]] virtual Envelope envelope(std::span<const WrittenRecord> records,
                                          const std::filesystem::path& scratch_folder) const = 0;
  [[nodiscard]] virtual ShardColumns columns(std::uint64_t samples) const = 0;
  /// The size of a whole shard, or a little more: where an HDF5 file has many class names, only the
  /// library knows what they take.
  [[nodiscard]] virtual std::uint64_t shard_bytes(std::uint64_t samples) const = 0;

 protected:
  std::uint64_t records_base_ = 0;
  std::uint64_t record_bytes_ = 0;
  std::uint64_t tensor_offset_ = 0;
};

/// Throws InvalidArgument if the names or the tensor are too large for the format, Unsupported for
/// HDF5, which a library of its own writes.
[[nodiscard]] std::unique_ptr<const Framing> make_framing(Format format, const TensorSpec& spec,
                                                          const NameLimits& limits);

}  // namespace precache
