// SPDX-License-Identifier: Apache-2.0
#include "reader/device/device_ring.hpp"

#include <fmt/format.h>

#include <utility>

#include "formats/os/fork.hpp"
#include "precache/formats/error.hpp"

namespace precache::device {

class DeviceRing::Lease final : public DeviceLease {
 public:
  Lease(std::shared_ptr<DeviceRing> ring, std::size_t place)
      : ring_(std::move(ring)), place_(place) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  ~Lease() override {
    if (!is_of_this_process()) {
      // Without CUDA the ring cannot be destroyed, so it is leaked.
      // The process may end if it has no memory for a pointer.
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new)
      (void)new std::shared_ptr<DeviceRing>(std::move(ring_));
      return;
    }
    try {
      if (!streams_.empty()) release();
    } catch (...) {  // waits for the device instead; if that fails, the loader's next call throws
    }
    if (released_) return;
    try {
      const CurrentDevice current(ring_->device_);
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", ring_->device_);
      ring_->give_back(place_);
    } catch (...) {
      ring_->note_failure();
    }
  }

  void wait_on(CUstream_st* stream) override {
    check_process();
    const CurrentDevice current(ring_->device_);
    check(cudaStreamWaitEvent(stream, ring_->ready(place_), 0), "cudaStreamWaitEvent",
          ring_->device_);
  }

  void wait() override {
    check_process();
    const CurrentDevice current(ring_->device_);
    check(cudaEventSynchronize(ring_->ready(place_)), "cudaEventSynchronize", ring_->device_);
  }

  void release() override {
    check_process();
    ring_->release(place_, std::exchange(streams_, {}));
    released_ = true;
  }

 private:
  [[nodiscard]] bool is_of_this_process() const { return generation_ == fork_generation(); }
  void check_process() const {
    if (is_of_this_process()) return;
    throw InvalidArgument("this batch was loaded before fork() and cannot be used in the child",
                          "Create the loader in the process that uses it.");
  }

  const std::uint64_t generation_ = fork_generation();
  std::shared_ptr<DeviceRing> ring_;
  const std::size_t place_;
  bool released_ = false;
};

DeviceRing::DeviceRing(int device, std::size_t places, std::size_t place_bytes)
    : device_(device), stream_(make_stream(device)) {
  places_.reserve(places);
  free_.reserve(places);
  for (std::size_t i = 0; i < places; ++i) {
    Place& place = places_.emplace_back();
    place.memory = allocate_device(device, place_bytes);
    place.ready = make_event(device, EventUse::kHostWaits);
    place.released.push_back(make_event(device, EventUse::kStreamsWait));
    free_.push_back(i);
  }
}

DeviceRing::~DeviceRing() {
  const CurrentDevice current(device_, std::nothrow);
  for (const Place& place : places_) {
    for (const Event& released : place.released) {
      if (cudaStreamWaitEvent(stream_.get(), released.get(), 0) != cudaSuccess) {
        (void)cudaGetLastError();
      }
    }
  }
  if (cudaStreamSynchronize(stream_.get()) != cudaSuccess) (void)cudaGetLastError();
  places_.clear();
  stream_.reset();
}

std::optional<std::size_t> DeviceRing::first_free() const {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  return free_.front();
}

void DeviceRing::take_first_free() {
  const std::lock_guard lock(mutex_);
  free_.erase(free_.begin());
}

void DeviceRing::give_back(std::size_t place) {
  const std::lock_guard lock(mutex_);
  free_.push_back(place);
}

std::shared_ptr<DeviceLease> DeviceRing::lend(std::size_t place) {
  try {
    return std::make_shared<Lease>(shared_from_this(), place);
  } catch (...) {
    give_back(place);
    throw;
  }
}

void DeviceRing::wait_for_users(std::size_t place) const {
  // An event that was never recorded, or by earlier users only, has completed.
  for (const Event& released : places_[place].released) {
    check(cudaStreamWaitEvent(stream_.get(), released.get(), 0), "cudaStreamWaitEvent", device_);
  }
}

void DeviceRing::release(std::size_t place, const std::vector<CUstream_st*>& streams) {
  const CurrentDevice current(device_);
  std::vector<Event>& released = places_[place].released;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (i == released.size()) released.push_back(make_event(device_, EventUse::kStreamsWait));
    check(cudaEventRecord(released[i].get(), streams[i]), "cudaEventRecord", device_);
  }
  give_back(place);
}

void DeviceRing::throw_full() const {
  throw InvalidArgument(fmt::format("all {} batches on the device are in use", size()),
                        "Release batches before calling next(), or raise `device_batches`.");
}

void DeviceRing::note_failure() {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::current_exception();
}

void DeviceRing::check_releases() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace precache::device
