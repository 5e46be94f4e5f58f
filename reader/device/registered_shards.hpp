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

/// All shards of a dataset in mappings that a GPU copies from.
///
/// Drivers take a private writable mapping, whose pages become memory of the process's own then;
/// a read-only one, which copies nothing, only where the device says so. A forked process does not
/// have the mappings.
class RegisteredShards {
 public:
  /// Registers them all. Throws DeviceError if the driver refuses one, and then none is; IoError,
  /// CorruptData.  REQUIRES: `device` is the current one.
  RegisteredShards(const ShardSet& shards, int device);
  RegisteredShards(const RegisteredShards&) = delete;
  RegisteredShards& operator=(const RegisteredShards&) = delete;
  /// REQUIRES: no copy from them is under way.
  ~RegisteredShards();

  [[nodiscard]] std::span<const std::byte> bytes(std::size_t shard) const {
    return ranges_[shard].bytes();
  }

 private:
  void unregister();

  std::deque<PrivateRange> ranges_;
  std::size_t registered_ = 0;  // the first so many
};

/// Where tensors are copied from, and why: from the registered shards, or from pinned batches.
struct Source {
  std::unique_ptr<RegisteredShards> registered;  // none: from pinned batches
  std::uint64_t bytes_registered = 0;
  std::string reason;
};

/// Throws InvalidArgument, IoError or DeviceError if a path that was asked for is not possible.
/// REQUIRES: `options.device` is the current one.
[[nodiscard]] Source choose_source(const ShardSet& shards, const DeviceOptions& options);

}  // namespace precache::device
