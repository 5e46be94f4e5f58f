// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fake_cudart.hpp"
#include "state.hpp"

namespace fake_cudart {

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kRace:
      return "race";
    case FaultKind::kSourceChanged:
      return "source changed";
    case FaultKind::kFreed:
      return "freed memory";
    case FaultKind::kOutOfBounds:
      return "out of bounds";
    case FaultKind::kUnregistered:
      return "unregistered memory";
    case FaultKind::kBadPointer:
      return "bad pointer";
    case FaultKind::kBadPitch:
      return "bad pitch";
    case FaultKind::kWrongDevice:
      return "wrong device";
    case FaultKind::kDoubleFree:
      return "double free";
    case FaultKind::kBadHandle:
      return "bad handle";
    case FaultKind::kBadArgument:
      return "bad argument";
    case FaultKind::kLegacyStream:
      return "legacy stream";
    case FaultKind::kNoKernelBody:
      return "no kernel body";
    case FaultKind::kHostTouch:
      return "host touches device memory";
    case FaultKind::kCallInCallback:
      return "call in a callback";
    case FaultKind::kBodyThrew:
      return "body threw";
  }
  return "unknown";
}

std::vector<Fault> faults() {
  const Lock lock(state().mutex);
  return state().faults;
}

std::vector<std::string> leaks() {
  State& s = state();
  const Lock lock(s.mutex);
  std::vector<std::string> alive;
  for (const auto& entry : s.regions)
    if (entry.second->alive) alive.push_back(describe(*entry.second));
  for (const auto& entry : s.streams)
    if (entry.second->alive && !entry.second->legacy)
      alive.push_back("stream " + std::to_string(entry.second->actor) + " of device " +
                      std::to_string(entry.second->device));
  for (const auto& entry : s.events)
    if (entry.second->alive)
      alive.push_back("event of device " + std::to_string(entry.second->device));
  std::sort(alive.begin(), alive.end());  // the tables are in the order of addresses
  return alive;
}

std::string report() {
  std::string lines;
  for (const Fault& fault : faults())
    lines += std::string(name_of(fault.kind)) + ": " + fault.text + "\n";
  for (const std::string& leak : leaks()) lines += "leak: " + leak + "\n";
  return lines;
}

void reset() {
  State& s = state();
  Lock lock(s.mutex);
  end_all_streams(lock);
  drop_all_memory();
  ++s.generation;
  s.settings = Settings{};
  s.faults.clear();
  s.calls.clear();
  s.failures.clear();
  s.any_failures.clear();
  s.contexts.clear();
  s.choice_failed = false;
  s.host = Clock{};
  s.actors = 1;
  s.regions_made = 0;
  s.regions.clear();
  s.unregistered.clear();
  s.streams.clear();
  s.legacy_streams.clear();
  s.events.clear();
  s.pending_bodies.clear();
}

void set_device_count(int count) {
  const Lock lock(state().mutex);
  state().settings.device_count = count;
}

void set_driver_version(int version) {
  const Lock lock(state().mutex);
  state().settings.driver_version = version;
}

void set_attribute(cudaDeviceAttr attribute, int value) {
  const Lock lock(state().mutex);
  state().settings.attributes[attribute] = value;
}

void set_register_limit(std::size_t bytes) {
  const Lock lock(state().mutex);
  state().settings.register_limit = bytes;
}

void set_device_memory(std::size_t bytes) {
  const Lock lock(state().mutex);
  state().settings.device_memory = bytes;
}

void set_delays(std::uint64_t seed, unsigned max_delay_us) {
  State& s = state();
  const Lock lock(s.mutex);
  s.settings.seed = seed;
  s.settings.max_delay_us = max_delay_us;
  for (const auto& entry : s.streams) entry.second->random.seed(seed + entry.second->actor);
}

void fail_call(const std::string& name, std::uint64_t nth, cudaError_t error, Repeat repeat) {
  const Lock lock(state().mutex);
  state().failures[name].push_back({nth, error, repeat});
}

void fail_any_call(std::uint64_t nth, cudaError_t error, Repeat repeat) {
  const Lock lock(state().mutex);
  state().any_failures.push_back({nth, error, repeat});
}

std::map<std::string, std::uint64_t> calls() {
  const Lock lock(state().mutex);
  return state().calls;
}

std::uint64_t call_count() {
  std::uint64_t sum = 0;
  for (const auto& entry : calls()) sum += entry.second;
  return sum;
}

std::vector<int> stream_priorities(int device) {
  const Lock lock(state().mutex);
  std::vector<int> priorities;
  for (const auto& entry : state().streams)
    if (entry.second->alive && !entry.second->legacy && entry.second->device == device)
      priorities.push_back(entry.second->priority);
  std::sort(priorities.begin(), priorities.end());
  return priorities;
}

unsigned event_flags(cudaEvent_t event) {
  const Lock lock(state().mutex);
  return state().events.at(event)->flags;
}

std::vector<int> contexts() {
  const Lock lock(state().mutex);
  return {state().contexts.begin(), state().contexts.end()};
}

void host_access(const void* pointer, std::size_t size, bool write) {
  State& s = state();
  const Lock lock(s.mutex);
  const Address begin = address_of(pointer);
  const RegionPtr region = find_region(begin);
  if (in_device_range(begin)) {
    add_fault(FaultKind::kHostTouch, "host_access", "the host touches device memory");
  } else if (region && !region->alive) {
    add_fault(FaultKind::kFreed, "host_access", "the host touches " + describe(*region));
  } else if (region) {
    const Address end = std::min(begin + size, region->end());
    // A host function's accesses are its stream's.
    if (const OpPtr op = this_thread().running)
      record(*region, {begin, end, op, false}, write);
    else
      record_host("host_access", *region, begin, end, write);
  }
}

}  // namespace fake_cudart
