// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/device_loader.hpp"

#include <utility>

#include "precache/formats/error.hpp"
#include "reader/device/device_backend.hpp"

namespace precache {
namespace {

constexpr DevicePath kPaths[] = {DevicePath::kAuto, DevicePath::kStaged, DevicePath::kStrided,
                                 DevicePath::kGather};

}  // namespace

std::string_view name(DevicePath path) {
  switch (path) {
    case DevicePath::kAuto:
      return "auto";
    case DevicePath::kStaged:
      return "staged";
    case DevicePath::kStrided:
      return "strided";
    case DevicePath::kGather:
      return "gather";
  }
  return "?";
}

DevicePath parse_device_path(std::string_view text) {
  for (const DevicePath path : kPaths) {
    if (name(path) == text) return path;
  }
  throw InvalidArgument("a path to the device '" + std::string(text) + "'",
                        "Paths are auto, staged, strided and gather.");
}

DeviceLoader::DeviceLoader(Dataset dataset, const LoaderOptions& options,
                           const DeviceOptions& device)
    : impl_(make(std::move(dataset), options, device)) {}
DeviceLoader::DeviceLoader(DeviceLoader&&) noexcept = default;

DeviceLoader& DeviceLoader::operator=(DeviceLoader&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

DeviceLoader::~DeviceLoader() {
  // Neither our threads nor CUDA are there.
  if (impl_ != nullptr && !impl_->is_of_this_process()) (void)impl_.release();
}

DeviceLoader::Impl& DeviceLoader::impl() const {
  if (!impl_->is_of_this_process()) {
    throw InvalidArgument("a loader cannot be used in a process that was forked since it was made",
                          "Make the loader in the process that uses it.");
  }
  return *impl_;
}

std::optional<DeviceBatch> DeviceLoader::next() { return impl().next(); }

bool DeviceLoader::wait_for(std::chrono::nanoseconds time) { return impl().wait_for(time); }

std::uint64_t DeviceLoader::batches_per_epoch() const { return impl().batches_per_epoch(); }

std::uint64_t DeviceLoader::batches_left() const { return impl().batches_left(); }

std::uint64_t DeviceLoader::epoch() const { return impl().state().epoch; }

void DeviceLoader::set_epoch(std::uint64_t epoch) {
  OrderState state = impl().state();
  // What is on its way stays good, unless it failed: the reason may be gone.
  if (state.epoch == epoch && state.position == 0 && !impl().has_failed()) return;
  state.epoch = epoch;
  state.position = 0;
  impl().resume(state);
}

OrderState DeviceLoader::state() const { return impl().state(); }

void DeviceLoader::resume(const OrderState& state) { impl().resume(state); }

const TensorSpec& DeviceLoader::spec() const { return impl().spec(); }

DeviceStats DeviceLoader::stats() const { return impl().stats(); }

const std::vector<std::string>& DeviceLoader::warnings() const { return impl().warnings(); }

}  // namespace precache
