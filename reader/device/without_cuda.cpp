// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/error.hpp"
#include "reader/device/device_lease.hpp"

namespace precache {

void throw_without_cuda() {
  throw Unsupported("this build of precache has no CUDA, so batches cannot be put on a GPU",
                    "Build it where the CUDA Toolkit 13 is installed, with PRECACHE_WITH_CUDA=ON.");
}

class DeviceLoader::Impl {};

DeviceLoader::DeviceLoader(Dataset, const LoaderOptions&, const DeviceOptions&) {
  throw_without_cuda();
}
DeviceLoader::DeviceLoader(DeviceLoader&&) noexcept = default;
DeviceLoader& DeviceLoader::operator=(DeviceLoader&&) noexcept = default;
DeviceLoader::~DeviceLoader() = default;

// There is no loader that these could be called for.
std::optional<DeviceBatch> DeviceLoader::next() { throw_without_cuda(); }
bool DeviceLoader::wait_for(std::chrono::nanoseconds) { throw_without_cuda(); }
std::uint64_t DeviceLoader::batches_per_epoch() const { throw_without_cuda(); }
std::uint64_t DeviceLoader::batches_left() const { throw_without_cuda(); }
std::uint64_t DeviceLoader::epoch() const { throw_without_cuda(); }
void DeviceLoader::set_epoch(std::uint64_t) { throw_without_cuda(); }
OrderState DeviceLoader::state() const { throw_without_cuda(); }
void DeviceLoader::resume(const OrderState&) { throw_without_cuda(); }
TensorSpec DeviceLoader::spec() const { throw_without_cuda(); }
DeviceStats DeviceLoader::stats() const { throw_without_cuda(); }
std::vector<std::string> DeviceLoader::warnings() const { throw_without_cuda(); }

}  // namespace precache
