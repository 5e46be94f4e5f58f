// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "precache/reader/device_loader.hpp"
#include "reader/shards/mapped_shard.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache::device {

/// All shards of a dataset in mappings that are registered with CUDA, so that a GPU copies from
/// them.
///
/// A read-only mapping, which copies nothing, is used if the device supports it. Otherwise the
/// mapping is private and writable, and its pages become the process's own memory. A forked process
/// does not have the mappings.
class RegisteredShards {
 public:
  /// Registers all shards. Throws DeviceError if the driver refuses one (then none is registered),
  /// IoError, CorruptData.  REQUIRES: `device` is the current one.
  RegisteredShards(const ShardSet& shards, int device);
  RegisteredShards(const RegisteredShards&) = delete;
  RegisteredShards& operator=(const RegisteredShards&) = delete;
  /// REQUIRES: no copy from the shards is running.
  ~RegisteredShards();

  [[nodiscard]] std::span<const std::byte> bytes(std::size_t shard) const {
    return ranges_[shard].bytes();
  }

 private:
  void unregister();

  std::deque<PrivateRange> ranges_;
  std::size_t registered_ = 0;  // that many from the front
};

/// The memory that tensors are copied from, and the reason.
struct Source {
  std::unique_ptr<RegisteredShards> registered;  // none: from pinned batches
  std::uint64_t bytes_registered = 0;
  std::string reason;
};

/// Throws InvalidArgument, IoError or DeviceError if the chosen path is not possible.
/// REQUIRES: `options.device` is the current one.
[[nodiscard]] Source choose_source(const ShardSet& shards, const DeviceOptions& options);

}  // namespace precache::device
