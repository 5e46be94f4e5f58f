// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "reader/device/cuda_handles.hpp"
#include "reader/device/device_lease.hpp"

namespace precache::device {

/// Places for batches in a device's memory, and the stream that fills them.
///
/// A place is free, or the filler's, or lent to a consumer. Those who release a place note with it
/// how far their streams have to come, and only who fills it again waits for that: a stream that
/// waited at once would keep copies to all other places from starting, too, and a host that runs
/// ahead of the device has many steps to wait for. Releasing may be done by any thread; filling by
/// one.
class DeviceRing : public std::enable_shared_from_this<DeviceRing> {
 public:
  /// Throws DeviceError.  REQUIRES: `device` is the current one.
  DeviceRing(int device, std::size_t places, std::size_t place_bytes);
  DeviceRing(const DeviceRing&) = delete;
  DeviceRing& operator=(const DeviceRing&) = delete;
  /// Waits until nobody uses the places any more.
  ~DeviceRing();

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  [[nodiscard]] std::size_t size() const { return places_.size(); }
  [[nodiscard]] std::byte* memory(std::size_t place) const { return places_[place].memory.get(); }
  /// Recorded by the filler when the place is filled.
  [[nodiscard]] cudaEvent_t ready(std::size_t place) const { return places_[place].ready.get(); }

  /// The place that is free for the longest time; stays free.
  [[nodiscard]] std::optional<std::size_t> first_free() const;
  /// Makes it the filler's.
  void take_first_free();
  /// Makes the stream wait for the last users of a place that was taken. Throws DeviceError.
  /// REQUIRES: the ring's device is the current one.
  void wait_for_users(std::size_t place) const;
  /// What was filled is not wanted.
  void give_back(std::size_t place);
  /// If there is no memory for a lease, the place is free again.
  [[nodiscard]] std::unique_ptr<DeviceLease> lend(std::size_t place);
  /// Throws what went wrong when a place was released by a destructor.
  void check_releases() const;

 private:
  struct Place {
    DeviceMemory memory;
    Event ready;
    std::vector<Event> released;  // one for each stream of those that released it at once
  };
  class Lease;

  void release(std::size_t place, std::span<CUstream_st* const> streams);
  void note_failure();

  const int device_;
  Stream stream_;
  std::vector<Place> places_;
  mutable std::mutex mutex_;       // guards what follows
  std::vector<std::size_t> free_;  // the longest free first; with room for all, so no release fails
  std::exception_ptr failure_;
};

}  // namespace precache::device
