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
      // A fork would copy all pages of a private mapping that is pinned. Old kernels cannot prevent
      // it, which is only slower.
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
      shard->check();  // after the pages were read, so that they are known to be good
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

Source choose_source(const ShardSet& shards, const DeviceOptions& options) {
  if (options.device_path == DevicePath::kStaged) return {nullptr, 0, "`device_path` is staged."};
  const bool asked = options.device_path != DevicePath::kAuto;
  if (options.pin_shards_up_to_bytes == 0 && !asked) {
    return {nullptr, 0, "Staged: `pin_shards_up_to_bytes` is 0, so no shards are pinned."};
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < shards.shard_count(); ++i) {
    bytes = checked_add(bytes, shards.index(i).bytes);
  }
  if (bytes > options.pin_shards_up_to_bytes) {
    std::string why = fmt::format("the shards have {} bytes, more than the {} that may be pinned",
                                  bytes, options.pin_shards_up_to_bytes);
    if (asked) {
      throw InvalidArgument(why, "Raise `pin_shards_up_to_bytes`, or use `device_path` staged.");
    }
    return {nullptr, 0, "Staged: " + why + "."};
  }
  const auto not_pinned = [&](const Error& error) -> Source {
    if (asked) throw;
    return {nullptr, 0, fmt::format("Staged: {}.", error.what())};
  };
  try {
    return {std::make_unique<RegisteredShards>(shards, options.device), bytes,
            options.device_path == DevicePath::kStrided ? "`device_path` is strided."
            : options.device_path == DevicePath::kGather
                ? "`device_path` is gather."
                : fmt::format("All {} bytes of shards are pinned; runs of neighbours use strided "
                              "copies, other batches use gather.",
                              bytes)};
  } catch (const DeviceError& error) {
    return not_pinned(error);
  } catch (const IoError& error) {  // too many mappings or open files
    return not_pinned(error);
  }
}

}  // namespace precache::device
