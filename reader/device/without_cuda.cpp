// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/error.hpp"
#include "reader/device/device_backend.hpp"

namespace precache {

void throw_without_cuda() {
  throw Unsupported("this build of precache has no CUDA, so batches cannot be put on a GPU",
                    "Build it where the CUDA Toolkit 13 is installed, with PRECACHE_WITH_CUDA=ON.");
}

std::unique_ptr<DeviceLoader::Impl> DeviceLoader::make(Dataset, const LoaderOptions&,
                                                       const DeviceOptions&) {
  throw_without_cuda();
}

}  // namespace precache
