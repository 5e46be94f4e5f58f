// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "reader/device/cuda_handles.hpp"
#include "reader/device/device_lease.hpp"

namespace precache::device {

/// Places for batches in a device's memory, and the stream that fills them.
///
/// A place is free, owned by the filler, or lent to a consumer. Releasing a place records an event
/// on the consumer's streams, and the filler waits for these events only when it fills the place
/// again. A wait at once would delay the copies to all other places, and a host that runs ahead of
/// the device has many steps to wait for. Any thread may release a place; one thread fills them.
class DeviceRing : public std::enable_shared_from_this<DeviceRing> {
 public:
  /// Throws DeviceError.  REQUIRES: `device` is the current one.
  DeviceRing(int device, std::size_t places, std::size_t place_bytes);
  DeviceRing(const DeviceRing&) = delete;
  DeviceRing& operator=(const DeviceRing&) = delete;
  /// Waits until the consumers' streams no longer use the places.
  ~DeviceRing();

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  [[nodiscard]] std::size_t size() const { return places_.size(); }
  [[nodiscard]] std::byte* memory(std::size_t place) const { return places_[place].memory.get(); }
  /// The event that the filler records when the place is filled.
  [[nodiscard]] cudaEvent_t ready(std::size_t place) const { return places_[place].ready.get(); }

  /// The place that has been free for the longest time. It stays free.
  [[nodiscard]] std::optional<std::size_t> first_free() const;
  /// Throws the InvalidArgument for a consumer that holds all places.
  [[noreturn]] void throw_full() const;
  /// Gives the first free place to the filler.
  void take_first_free();
  /// Makes the stream wait for the last users of a place that was taken. Throws DeviceError.
  /// REQUIRES: the ring's device is the current one.
  void wait_for_users(std::size_t place) const;
  /// Makes a filled place free again.
  void give_back(std::size_t place);
  /// Throws std::bad_alloc; the place is free again then.
  [[nodiscard]] std::shared_ptr<DeviceLease> lend(std::size_t place);
  /// Rethrows the error of a destructor that could not release its place.
  void check_releases() const;

 private:
  struct Place {
    DeviceMemory memory;
    Event ready;
    std::vector<Event> released;  // one for each stream of the last consumer
  };
  class Lease;

  void release(std::size_t place, const std::vector<CUstream_st*>& streams);
  void note_failure();

  const int device_;
  Stream stream_;
  std::vector<Place> places_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::size_t>
      free_;  // the longest free first; never reallocated, so releasing cannot fail
  std::exception_ptr failure_;
};

}  // namespace precache::device
