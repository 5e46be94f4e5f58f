// SPDX-License-Identifier: Apache-2.0
#include "state.hpp"

#include <pthread.h>

#include <utility>

namespace fake_cudart {

namespace {

/// The error of the failure injected into this call, or cudaSuccess.
cudaError_t draw(std::vector<Failure>& failures) {
  cudaError_t error = cudaSuccess;
  for (auto it = failures.begin(); it != failures.end();) {
    if (it->calls_left > 1) {
      --it->calls_left;
      ++it;
      continue;
    }
    error = it->error;
    it = it->repeat == Repeat::kOnce ? failures.erase(it) : it + 1;
  }
  return error;
}

thread_local int calls_of_this_thread = 0;

}  // namespace

bool in_call() { return calls_of_this_thread != 0; }

Call::Inside::Inside() { ++calls_of_this_thread; }
Call::Inside::~Inside() { --calls_of_this_thread; }

State& state() {
  static State* const instance = [] {
    // A forked child must not wait for a lock that a thread of its parent held.
    (void)::pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); },
                           [] { state().mutex.unlock(); });
    return new State;
  }();
  return *instance;
}

ThreadState& this_thread() {
  thread_local ThreadState thread;
  if (thread.generation != state().generation) {
    thread = ThreadState{};
    thread.generation = state().generation;
  }
  return thread;
}

void add_fault(FaultKind kind, const char* call, std::string text) {
  state().faults.push_back({kind, call, std::move(text)});
}

Call::Call(const char* name, Kind kind) : name_(name), lock_(state().mutex) {
  State& s = state();
  ++s.calls[name];
  ordered_ = draw(s.any_failures);
  if (const auto of_name = s.failures.find(name); of_name != s.failures.end())
    if (const cudaError_t error = draw(of_name->second); error != cudaSuccess) ordered_ = error;
  if (this_thread().running) {
    add_fault(FaultKind::kCallInCallback, name,
              std::string(name) + " is called by what " + this_thread().running->call + " runs");
    ordered_ = cudaErrorNotPermitted;
    refused_ = true;
    return;
  }
  if (ordered_ != cudaSuccess) {
    refused_ = kind != Kind::kGivesBack && kind != Kind::kRestoresDevice;
    if (kind == Kind::kChoosesDevice) s.choice_failed = true;
  } else if (kind != Kind::kWithoutDevice) {
    if (s.settings.driver_version == 0)
      ordered_ = cudaErrorInsufficientDriver;
    else if (s.settings.device_count == 0)
      ordered_ = cudaErrorNoDevice;
    refused_ = ordered_ != cudaSuccess;
  }
  if (!refused_ && (kind == Kind::kPlain || kind == Kind::kGivesBack)) s.contexts.insert(device());
}

cudaError_t Call::result(cudaError_t error) {
  if (error == cudaSuccess) error = failed_ != cudaSuccess ? failed_ : ordered_;
  if (error != cudaSuccess) this_thread().last_error = error;
  return error;
}

cudaError_t Call::fault(FaultKind kind, const std::string& text, cudaError_t error) {
  add_fault(kind, name_, std::string(name_) + ": " + text);
  failed_ = error;
  return result();
}

void Call::expect_device(int device, const std::string& what) {
  if (device == this->device() || state().choice_failed) return;
  add_fault(FaultKind::kWrongDevice, name_,
            std::string(name_) + ": " + what + " is of device " + std::to_string(device) +
                ", the current one is " + std::to_string(this->device()));
}

}  // namespace fake_cudart
