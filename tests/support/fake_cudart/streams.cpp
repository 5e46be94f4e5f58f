// SPDX-License-Identifier: Apache-2.0
// Streams: how operations are ordered, queued and run.
#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "state.hpp"

namespace fake_cudart {

namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

StreamPtr new_stream(int device, unsigned flags, int priority) {
  State& s = state();
  auto stream = std::make_shared<Stream>();
  stream->actor = s.actors++;
  stream->device = device;
  stream->priority = priority;
  stream->blocking = (flags & cudaStreamNonBlocking) == 0;
  stream->random.seed(s.settings.seed + stream->actor);
  s.streams.emplace(stream.get(), stream);
  return stream;
}

const StreamPtr& legacy_stream(int device) {
  StreamPtr& stream = state().legacy_streams[device];
  if (!stream) {
    stream = new_stream(device, cudaStreamDefault, 0);
    stream->legacy = true;
  }
  return stream;
}

Stream& held_stream(cudaStream_t handle) {
  return handle == nullptr ? *legacy_stream(this_thread().current()) : *state().streams.at(handle);
}

void run_unlocked(Lock& lock, const OpPtr& op) {
  std::string message;
  this_thread().running = op;
  lock.unlock();
  try {
    op->unlocked_work();
  } catch (const std::exception& error) {
    message = std::string(op->call) + " ran a body that threw: " + error.what();
  } catch (...) {
    message = std::string(op->call) + " ran a body that threw";
  }
  lock.lock();
  this_thread().running.reset();
  std::erase(state().pending_bodies, op);
  if (!message.empty()) add_fault(FaultKind::kBodyThrew, op->call, message);
}

void run(Lock& lock, Stream& stream, const OpPtr& op) {
  State& s = state();
  const std::uint64_t delay_us = stream.random() % (s.settings.max_delay_us + 1ULL);
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
  lock.lock();
  s.changed.wait(lock, [&] {
    return std::all_of(op->waits_for.begin(), op->waits_for.end(),
                       [](const OpPtr& other) { return other->done; });
  });
  if (op->locked_work) op->locked_work();
  if (op->unlocked_work) run_unlocked(lock, op);
  op->done = true;
  op->done_at = std::chrono::steady_clock::now();
  // Work keeps memory alive, and its dependencies would keep everything before it.
  op->locked_work = nullptr;
  op->unlocked_work = nullptr;
  op->waits_for.clear();
  s.changed.notify_all();
}

void work_off(const StreamPtr& stream) {
  State& s = state();
  Lock lock(s.mutex);
  while (true) {
    s.changed.wait(lock,
                   [&] { return !stream->alive || (!stream->held && !stream->queue.empty()); });
    if (stream->queue.empty()) break;
    const OpPtr op = stream->queue.front();
    stream->queue.pop_front();
    run(lock, *stream, op);
  }
  --s.threads;
  s.changed.notify_all();
}

/// The step starts after all earlier work of `other`.
void wait_for_stream(Op& op, const Stream& other) {
  op.clock.join(other.clock);
  if (other.last && !other.last->done) op.waits_for.push_back(other.last);
}

}  // namespace

StreamPtr find_stream(Call& call, cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream(call.device());
  const auto found = state().streams.find(handle);
  if (found != state().streams.end() && found->second->alive) return found->second;
  call.fault(FaultKind::kBadHandle,
             handle == cudaStreamPerThread    ? "per-thread streams are not provided"
             : found != state().streams.end() ? "the stream is destroyed"
                                              : "not a stream",
             cudaErrorInvalidResourceHandle);
  return nullptr;
}

OpPtr new_op(const char* call, Stream& stream) {
  State& s = state();
  auto op = std::make_shared<Op>();
  op->call = call;
  op->actor = stream.actor;
  op->device = stream.device;
  op->host_clock = s.host;
  op->clock = s.host;
  op->clock.join(stream.clock);
  if (stream.legacy) {
    for (const auto& entry : s.streams)
      if (entry.second->device == stream.device && entry.second->blocking)
        wait_for_stream(*op, *entry.second);
  } else if (stream.blocking) {
    const auto legacy = s.legacy_streams.find(stream.device);
    if (legacy != s.legacy_streams.end()) wait_for_stream(*op, *legacy->second);
  }
  op->step = ++stream.steps;
  op->clock.set(op->actor, op->step);
  return op;
}

void push(const StreamPtr& stream, const OpPtr& op) {
  State& s = state();
  stream->clock = op->clock;
  stream->last = op;
  stream->queue.push_back(op);
  if (op->unlocked_work) s.pending_bodies.push_back(op);
  if (!stream->has_thread) {
    stream->has_thread = true;
    ++s.threads;
    std::thread([stream] { work_off(stream); }).detach();
  }
  s.changed.notify_all();
}

void wait_for(Lock& lock, const OpPtr& op) {
  if (!op) return;
  state().changed.wait(lock, [&] { return op->done; });
  state().host.join(op->clock);
}

void end_all_streams(Lock& lock) {
  State& s = state();
  for (const auto& entry : s.streams) entry.second->alive = false;
  s.changed.notify_all();
  s.changed.wait(lock, [&] { return s.threads == 0; });
}

void hold(cudaStream_t handle) {
  const Lock lock(state().mutex);
  held_stream(handle).held = true;
}

void let_go(cudaStream_t handle) {
  const Lock lock(state().mutex);
  held_stream(handle).held = false;
  state().changed.notify_all();
}

}  // namespace fake_cudart

using namespace fake_cudart;

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  Call call("cudaDeviceGetStreamPriorityRange");
  if (call.refused()) return call.result();
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return call.result();
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  Call call("cudaStreamGetPriority");
  if (call.refused()) return call.result();
  const StreamPtr stream = find_stream(call, handle);
  if (stream) *priority = stream->priority;
  return call.result();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int priority) {
  Call call("cudaStreamCreateWithPriority");
  if (call.refused()) return call.result();
  if (flags > cudaStreamNonBlocking)
    return call.fault(FaultKind::kBadArgument, "unknown flags", cudaErrorInvalidValue);
  priority = std::clamp(priority, kGreatestPriority, kLeastPriority);  // as CUDA does
  *handle = reinterpret_cast<cudaStream_t>(new_stream(call.device(), flags, priority).get());
  return call.result();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  Call call("cudaStreamCreateWithFlags");
  if (call.refused()) return call.result();
  if (flags > cudaStreamNonBlocking)
    return call.fault(FaultKind::kBadArgument, "unknown flags", cudaErrorInvalidValue);
  *handle = reinterpret_cast<cudaStream_t>(new_stream(call.device(), flags, 0).get());
  return call.result();
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  Call call("cudaStreamCreate");
  if (call.refused()) return call.result();
  *handle = reinterpret_cast<cudaStream_t>(new_stream(call.device(), 0, 0).get());
  return call.result();
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Call call("cudaStreamDestroy", Call::Kind::kGivesBack);
  if (call.refused()) return call.result();
  const auto found = state().streams.find(handle);
  if (found == state().streams.end() || found->second->legacy)
    return call.fault(FaultKind::kBadHandle, "not a stream", cudaErrorInvalidResourceHandle);
  if (!found->second->alive)
    return call.fault(FaultKind::kDoubleFree, "the stream is destroyed already",
                      cudaErrorInvalidResourceHandle);
  call.expect_device(found->second->device, "the stream");
  found->second->alive = false;  // it still finishes its work
  state().changed.notify_all();
  return call.result();
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Call call("cudaStreamSynchronize", Call::Kind::kGivesBack);
  if (call.refused()) return call.result();
  const StreamPtr stream = find_stream(call, handle);
  if (!stream) return call.result();
  call.expect_device(stream->device, "the stream");
  if (stream->legacy) push(stream, new_op(call.name(), *stream));  // after all blocking streams
  const OpPtr last = stream->last;
  wait_for(call.lock(), last);
  return call.result();
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Call call("cudaStreamQuery");
  if (call.refused()) return call.result();
  const StreamPtr stream = find_stream(call, handle);
  if (!stream) return call.result();
  call.expect_device(stream->device, "the stream");
  if (stream->last && !stream->last->done) return call.result(cudaErrorNotReady);
  wait_for(call.lock(), stream->last);
  return call.result();
}

cudaError_t cudaDeviceSynchronize() {
  Call call("cudaDeviceSynchronize", Call::Kind::kGivesBack);
  if (call.refused()) return call.result();
  std::vector<OpPtr> last;
  for (const auto& entry : state().streams)
    if (entry.second->device == call.device()) last.push_back(entry.second->last);
  for (const OpPtr& op : last) wait_for(call.lock(), op);
  return call.result();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  Call call("cudaLaunchHostFunc");
  if (call.refused()) return call.result();
  const StreamPtr stream = find_stream(call, handle);
  if (!stream) return call.result();
  const OpPtr op = new_op(call.name(), *stream);
  op->unlocked_work = [function, data] { function(data); };
  push(stream, op);
  return call.result();
}

}  // extern "C"
