// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "clock.hpp"
#include "fake_cudart.hpp"
#include "model.hpp"

/// The state of the fake. One lock guards all of it. Copies run under the lock; kernel bodies and
/// host functions do not.
namespace fake_cudart {

using Lock = std::unique_lock<std::mutex>;

struct Kernel {
  std::string name;
};

struct Body {
  std::vector<std::size_t> parameter_sizes;
  KernelBody run;
};

struct Failure {
  std::uint64_t calls_left = 0;
  cudaError_t error = cudaSuccess;
  Repeat repeat = Repeat::kOnce;
};

/// The part that reset() restores.
struct Settings {
  int device_count = 1;
  int driver_version = 13000;
  std::map<cudaDeviceAttr, int> attributes;
  std::size_t register_limit = SIZE_MAX;
  std::size_t device_memory = SIZE_MAX;
  std::uint64_t seed = 1;
  unsigned max_delay_us = 200;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t generation = 1;  ///< of reset()
  std::size_t threads = 0;

  Settings settings;
  std::vector<Fault> faults;
  std::map<std::string, std::uint64_t> calls;
  std::map<std::string, std::vector<Failure>> failures;
  std::vector<Failure> any_failures;

  std::set<int> contexts;      ///< devices that have one
  bool choice_failed = false;  ///< a thread failed to choose a device

  Clock host;
  std::size_t actors = 1;
  std::uint64_t regions_made = 0;
  std::map<Address, RegionPtr> regions;
  std::set<Address> unregistered;
  std::map<const void*, StreamPtr> streams;
  std::map<int, StreamPtr> legacy_streams;
  std::map<const void*, EventPtr> events;
  std::vector<OpPtr> pending_bodies;  ///< whose accesses are not known yet

  std::map<const void*, Kernel> kernels;  ///< by the address of the host's stub
  std::map<std::string, Body> bodies;
};

/// The one State. Never destroyed: stream threads and exit handlers of objects may outlive main().
State& state();

/// The state that CUDA keeps for each host thread.
struct ThreadState {
  std::uint64_t generation = 0;
  int device = 0;           ///< of cudaSetDevice()
  std::vector<int> pushed;  ///< by the driver's calls; the last one counts
  cudaError_t last_error = cudaSuccess;
  OpPtr running;  ///< on a stream's thread, the body it runs
  [[nodiscard]] int current() const { return pushed.empty() ? device : pushed.back(); }
};
/// Restored by the first use after a reset().  REQUIRES: the lock is held.
ThreadState& this_thread();

void add_fault(FaultKind kind, const char* call, std::string text);

/// One call of the runtime: takes the lock, counts, finds out whether it has to fail.
class Call {
 public:
  /// kPlain and kGivesBack make a context on the current device. kGivesBack and kRestoresDevice
  /// continue after an injected failure and report it at the end. If kChoosesDevice fails, a wrong
  /// device is not a fault.
  enum class Kind {
    kPlain,
    kGivesBack,
    kChoosesDevice,
    kRestoresDevice,
    kWithoutContext,
    kWithoutDevice
  };

  explicit Call(const char* name, Kind kind = Kind::kPlain);
  /// Must return result() at once.
  [[nodiscard]] bool refused() const { return refused_; }
  /// The result of the call, which is also the thread's last error: `error`, else that of the last
  /// fault(), else the injected failure.
  [[nodiscard]] cudaError_t result(cudaError_t error = cudaSuccess);
  /// Records a fault of this call, which then fails with `error`.
  cudaError_t fault(FaultKind kind, const std::string& text, cudaError_t error);
  /// A fault if `device` is not the current one. CUDA would allow it, but make a context there.
  void expect_device(int device, const std::string& what);
  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] Lock& lock() { return lock_; }
  [[nodiscard]] int device() const { return this_thread().current(); }

 private:
  /// For in_call().
  struct Inside {
    Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside();
  };

  Inside inside_;
  const char* name_;
  Lock lock_;
  cudaError_t ordered_ = cudaSuccess;
  cudaError_t failed_ = cudaSuccess;
  bool refused_ = false;
};

// devices.cpp

bool is_device(int device);
/// The value that was set, or that of a current device.
int attribute_of(cudaDeviceAttr attribute);

// streams.cpp

/// The stream of a handle; nullptr after a fault.
StreamPtr find_stream(Call& call, cudaStream_t handle);
/// A step at the stream's end, ordered as CUDA orders it; not queued yet.
OpPtr new_op(const char* call, Stream& stream);
/// Puts a step of new_op() into the queue.
void push(const StreamPtr& stream, const OpPtr& op);
/// Waits until the step is done; the host then knows so.
void wait_for(Lock& lock, const OpPtr& op);
/// Lets streams finish their work and ends their threads.
void end_all_streams(Lock& lock);

// memory.cpp

/// The region that holds `address`, dead or alive, or nullptr.
RegionPtr find_region(Address address);
/// True for all addresses that cudaMalloc may ever give.
bool in_device_range(Address address);
/// Where the bytes of an address are, which for device memory is the second mapping.
std::byte* bytes_at(Address address);
/// False once the host has unmapped pages of the range.
bool is_mapped(Address begin, std::size_t size);
std::string describe(const Region& region);
/// Gives all memory back to the system.
void drop_all_memory();

// races.cpp

/// Records an access and reports the races that it makes.
void record(Region& region, Access access, bool write);
/// As the host's next step: records an access by the host to the range.
void record_host(const char* call, Region& region, Address begin, Address end, bool write);
/// True if a device-side write to the range is still to run.
bool write_pending(const Region& region, Address begin, Address end);

}  // namespace fake_cudart
