// SPDX-License-Identifier: Apache-2.0
#include "reader/device/registered_shards.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"
#include "reader/device/cuda_handles.hpp"

namespace precache::device {

RegisteredShards::RegisteredShards(const ShardSet& shards, int device) {
  int read_only = 0;
  check(cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, device),
        "cudaDeviceGetAttribute", device);
  try {
    for (std::size_t i = 0; i < shards.shard_count(); ++i) {
      const auto shard = shards.map(i);
      const PrivateRange& range = ranges_.emplace_back(
          shard, 0, shard->bytes().size(), read_only != 0 ? PROT_READ : PROT_READ | PROT_WRITE);
      if (range.bytes().empty()) {
        ++registered_;
        continue;
      }
      // A fork would copy the pages of a private mapping that is pinned, all of them at once. A
      // kernel that cannot keep them from children only lacks that.
      (void)madvise(range.bytes().data(), range.bytes().size(), MADV_DONTFORK);
      const cudaError_t error =
          cudaHostRegister(range.bytes().data(), range.bytes().size(),
                           read_only != 0 ? cudaHostRegisterReadOnly : cudaHostRegisterDefault);
      if (error != cudaSuccess) {
        (void)cudaGetLastError();
        throw DeviceError(fmt::format("cudaHostRegister of '{}' failed on device {}: {}",
                                      shard->path().string(), device, text_of(error)));
      }
      ++registered_;
      shard->check();  // after the reading: what became memory is good
    }
  } catch (...) {
    unregister();
    throw;
  }
}

RegisteredShards::~RegisteredShards() { unregister(); }

void RegisteredShards::unregister() {
  for (; registered_ != 0; --registered_) {
    const auto bytes = ranges_[registered_ - 1].bytes();
    if (bytes.empty()) continue;
    if (cudaHostUnregister(bytes.data()) != cudaSuccess) (void)cudaGetLastError();
    (void)madvise(bytes.data(), bytes.size(), MADV_DOFORK);
  }
}

std::uint64_t total_bytes(const ShardSet& shards) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.shard_count(); ++i) {
    total = checked_add(total, shards.index(i).bytes);
  }
  return total;
}

}  // namespace precache::device
