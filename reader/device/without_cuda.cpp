// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/error.hpp"
#include "reader/device/device_lease.hpp"
#include "reader/loader/loader_core.hpp"

namespace precache {

void throw_without_cuda() {
  throw Unsupported("this build of precache has no CUDA, so it cannot load batches to a GPU",
                    "Build it where the CUDA Toolkit 13 is installed, with PRECACHE_WITH_CUDA=ON.");
}

DeviceLoader::DeviceLoader(const Dataset&, const LoaderOptions&, const DeviceOptions&)
    : LoaderBase(nullptr) {
  throw_without_cuda();
}

// No loader exists that these could be called for.
std::optional<DeviceBatch> DeviceLoader::next() { throw_without_cuda(); }
DeviceStats DeviceLoader::stats() const { throw_without_cuda(); }

}  // namespace precache
