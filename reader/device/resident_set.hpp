// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "precache/reader/batch_transform.hpp"
#include "reader/device/cuda_handles.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache::device {

/// All stored tensors and labels of a dataset in the memory of a device, in the order of the
/// samples.
class ResidentSet {
 public:
  /// Reads the dataset with `threads` threads and returns when it is on the device. Throws
  /// InvalidArgument if that takes more than `most_bytes`, and IoError, CorruptData, DeviceError.
  /// REQUIRES: the shards have a spec; `device` is the current one.
  ResidentSet(const std::shared_ptr<const ShardSet>& shards, unsigned threads,
              std::uint64_t most_bytes, int device);

  [[nodiscard]] const std::byte* tensors() const { return tensors_.get(); }
  [[nodiscard]] const std::int64_t* labels() const {
    return reinterpret_cast<const std::int64_t*>(labels_.get());
  }
  /// The sizes of the pictures that samples were made of, 0x0 if it is not known; empty if the
  /// dataset has none.
  [[nodiscard]] const std::vector<ImageSize>& originals() const { return originals_; }
  [[nodiscard]] std::optional<ImageSize> original(std::uint64_t sample) const {
    if (originals_.empty() || originals_[sample] == ImageSize()) return std::nullopt;
    return originals_[sample];
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void upload(const std::shared_ptr<const ShardSet>& shards, unsigned threads, int device);

  std::uint64_t bytes_ = 0;
  DeviceMemory tensors_;
  DeviceMemory labels_;
  std::vector<ImageSize> originals_;
};

}  // namespace precache::device
