// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "state.hpp"

using namespace fake_cudart;

namespace {

EventPtr find_event(Call& call, cudaEvent_t handle) {
  const auto found = state().events.find(handle);
  if (found != state().events.end() && found->second->alive) return found->second;
  call.fault(FaultKind::kBadHandle,
             found != state().events.end() ? "the event is destroyed" : "not an event",
             cudaErrorInvalidResourceHandle);
  return nullptr;
}

cudaError_t create(Call& call, cudaEvent_t* handle, unsigned flags) {
  if (call.refused()) return call.result();
  const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if ((flags & ~known) != 0)
    return call.fault(FaultKind::kBadArgument, "unknown flags", cudaErrorInvalidValue);
  auto event = std::make_shared<Event>();
  event->device = call.device();
  event->flags = flags;
  state().events.emplace(event.get(), event);
  *handle = reinterpret_cast<cudaEvent_t>(event.get());
  return call.result();
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  Call call("cudaEventCreate");
  return create(call, handle, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  Call call("cudaEventCreateWithFlags");
  return create(call, handle, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  Call call("cudaEventDestroy", Call::Kind::kGivesBack);
  if (call.refused()) return call.result();
  const auto found = state().events.find(handle);
  if (found == state().events.end())
    return call.fault(FaultKind::kBadHandle, "not an event", cudaErrorInvalidResourceHandle);
  if (!found->second->alive)
    return call.fault(FaultKind::kDoubleFree, "the event is destroyed already",
                      cudaErrorInvalidResourceHandle);
  call.expect_device(found->second->device, "the event");
  found->second->alive = false;
  found->second->record.reset();
  return call.result();
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  Call call("cudaEventRecord");
  if (call.refused()) return call.result();
  const EventPtr event = find_event(call, handle);
  if (!event) return call.result();
  const StreamPtr stream = find_stream(call, stream_handle);
  if (!stream) return call.result();
  if (event->device != stream->device)
    return call.fault(FaultKind::kWrongDevice,
                      "an event of device " + std::to_string(event->device) +
                          " in a stream of device " + std::to_string(stream->device),
                      cudaErrorInvalidResourceHandle);
  event->record = new_op(call.name(), *stream);
  push(stream, event->record);
  return call.result();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags) {
  Call call("cudaStreamWaitEvent");
  if (call.refused()) return call.result();
  const StreamPtr stream = find_stream(call, stream_handle);
  if (!stream) return call.result();
  const EventPtr event = find_event(call, handle);
  if (!event) return call.result();
  if (flags != cudaEventWaitDefault)
    return call.fault(FaultKind::kBadArgument, "flags are not provided", cudaErrorInvalidValue);
  if (!event->record) return call.result();  // nothing to wait for, as in CUDA
  const OpPtr op = new_op(call.name(), *stream);
  op->clock.join(event->record->clock);
  if (!event->record->done) op->waits_for.push_back(event->record);
  push(stream, op);
  return call.result();
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Call call("cudaEventQuery");
  if (call.refused()) return call.result();
  const EventPtr event = find_event(call, handle);
  if (!event) return call.result();
  call.expect_device(event->device, "the event");
  if (event->record && !event->record->done) return call.result(cudaErrorNotReady);
  wait_for(call.lock(), event->record);
  return call.result();
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Call call("cudaEventSynchronize", Call::Kind::kGivesBack);
  if (call.refused()) return call.result();
  const EventPtr event = find_event(call, handle);
  if (!event) return call.result();
  call.expect_device(event->device, "the event");
  const OpPtr record = event->record;
  wait_for(call.lock(), record);
  return call.result();
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Call call("cudaEventElapsedTime");
  if (call.refused()) return call.result();
  const EventPtr first = find_event(call, start);
  if (!first) return call.result();
  const EventPtr second = find_event(call, end);
  if (!second) return call.result();
  if (((first->flags | second->flags) & cudaEventDisableTiming) != 0)
    return call.fault(FaultKind::kBadArgument, "an event was made without timing",
                      cudaErrorInvalidResourceHandle);
  if (!first->record || !second->record)
    return call.fault(FaultKind::kBadArgument, "an event was never recorded",
                      cudaErrorInvalidResourceHandle);
  if (!first->record->done || !second->record->done) return call.result(cudaErrorNotReady);
  const auto elapsed = second->record->done_at - first->record->done_at;
  *milliseconds = std::chrono::duration<float, std::milli>(elapsed).count();
  return call.result();
}

}  // extern "C"
