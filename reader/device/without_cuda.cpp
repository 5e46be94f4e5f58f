// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/error.hpp"
#include "precache/reader/measure.hpp"
#include "reader/device/device_backend.hpp"

namespace precache {
namespace {

[[noreturn]] void say_unsupported() {
  throw Unsupported("this build of precache has no CUDA, so batches cannot be put on a GPU",
                    "Build it where the CUDA Toolkit 13 is installed, with PRECACHE_WITH_CUDA=ON.");
}

}  // namespace

std::unique_ptr<DeviceLoader::Impl> DeviceLoader::make(Dataset, const LoaderOptions&,
                                                       const DeviceOptions&) {
  say_unsupported();
}

double measure_link(int, const MeasureOptions&) { say_unsupported(); }

}  // namespace precache
