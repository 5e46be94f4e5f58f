// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "clock.hpp"

/// The model of the fake: operations, their accesses, streams and events.
namespace fake_cudart {

using Address = std::uintptr_t;

inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

/// One step of an actor: an operation in a stream, or an access by the host (which is done at
/// once).
struct Op {
  const char* call = "";
  std::size_t actor = kHost;
  std::uint64_t step = 0;
  Clock clock;       ///< everything that happened before the operation starts, and itself
  Clock host_clock;  ///< the host's at the call
  int device = 0;
  std::vector<std::shared_ptr<Op>> waits_for;
  std::function<void()> locked_work;
  std::function<void()> unlocked_work;
  bool done = false;
  std::chrono::steady_clock::time_point done_at{};
  const Op* raced_with = nullptr;  ///< so that a race of many rows is reported once
};
using OpPtr = std::shared_ptr<Op>;

struct Access {
  Address begin = 0;
  Address end = 0;
  OpPtr op;
  bool from_call_on = false;  ///< may start at the call, before what the stream still has to do
};

enum class RegionKind { kDevice, kPinned, kRegistered };

/// An allocation or registration. Those on the device and of cudaHostAlloc stay in the table when
/// they are freed: their addresses are not used again until reset().
struct Region {
  Address begin = 0;
  std::size_t size = 0;
  RegionKind kind = RegionKind::kDevice;
  int device = 0;
  unsigned flags = 0;
  bool alive = true;
  bool writable = true;
  std::uint64_t number = 0;
  std::vector<Access> reads;
  std::vector<Access> writes;
  std::size_t prune_at = 128;

  [[nodiscard]] Address end() const { return begin + size; }
};
using RegionPtr = std::shared_ptr<Region>;

struct Stream {
  std::size_t actor = 0;
  int device = 0;
  int priority = 0;
  bool blocking = true;  ///< takes turns with the legacy stream
  bool legacy = false;
  bool alive = true;
  bool has_thread = false;
  bool held = false;  ///< starts nothing while alive
  std::uint64_t steps = 0;
  Clock clock;
  OpPtr last;
  std::deque<OpPtr> queue;
  std::mt19937_64 random;
};
using StreamPtr = std::shared_ptr<Stream>;

struct Event {
  int device = 0;
  unsigned flags = 0;
  bool alive = true;
  OpPtr record;
};
using EventPtr = std::shared_ptr<Event>;

}  // namespace fake_cudart
