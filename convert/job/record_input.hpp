// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "convert/image/decode/image_decoder.hpp"
#include "formats/shard/framing.hpp"

namespace precache {

/// Makes the tensors of samples, by one thread at a time.
class TensorMaker {
 public:
  virtual ~TensorMaker() = default;

  /// Fills `tensor` with that of a sample. Throws IoError if the system refuses, and where the
  /// source is not what it was when it was listed.
  virtual std::optional<Rejection> make(std::uint64_t sample, std::span<std::byte> tensor) = 0;
  /// The CRC-32C of the bytes that the last sample has in the source; of none if they could not be
  /// read.
  [[nodiscard]] virtual std::uint32_t source_crc() const = 0;
  /// Whether the last sample was taken with a warning of its decoder.
  [[nodiscard]] virtual bool warned() const { return false; }
  /// The CRC-32C of the last tensor where it was copied, of what was read.
  [[nodiscard]] virtual std::optional<std::uint32_t> copied_crc() const { return std::nullopt; }
};

/// What the records of a run are made of. Any number of threads may use one at once.
class RecordInput {
 public:
  virtual ~RecordInput() = default;

  /// What the record of a sample says of it beside the tensor.
  [[nodiscard]] virtual SampleName name(std::uint64_t sample) const = 0;
  /// Where a sample comes from, as reports of rejected samples say it.
  [[nodiscard]] virtual std::string origin(std::uint64_t sample) const = 0;
  /// One for each thread of a run. It may borrow from this.
  [[nodiscard]] virtual std::unique_ptr<TensorMaker> tensor_maker() const = 0;
};

}  // namespace precache
