// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// The interface of libfake_cudart for tests. It replaces the CUDA runtime on machines without a
/// GPU.
///
/// A stream is a thread that runs its queue with small random delays. Only events, the rules of the
/// legacy stream and host synchronisation order two streams. Device memory is an address range that
/// traps on host accesses; the fake and kernel bodies use a second mapping (device_view()). Misuse
/// never aborts; it becomes a Fault.
///
/// The host counts as one actor; races between its threads are left to ThreadSanitizer. The host
/// knows that work is done only from CUDA calls, never from the effects of a host function.
///
/// Every function may be called from any thread, except reset().
namespace fake_cudart {

enum class FaultKind {
  kRace,           ///< two uses of the same bytes, one a write, ordered by nothing
  kSourceChanged,  ///< the host wrote to the source of a copy before the copy ran
  kFreed,          ///< use of memory that was freed, unregistered or unmapped
  kOutOfBounds,    ///< a range that leaves its allocation or registration
  kUnregistered,   ///< pageable memory where pinned memory is meant: 2D and batch copies, and what
                   ///< cudaMemcpyAsync copies to a device
  kBadPointer,  ///< memory of the wrong side, or none of CUDA's: a kind that does not fit, cudaFree
  kBadPitch,    ///< a pitch below the width
  kWrongDevice,  ///< stream, event or memory of another device than the one in use, or given back
                 ///< or waited for with another one current
  kDoubleFree,   ///< memory, stream or event given back twice
  kBadHandle,    ///< a stream or event that never existed or was destroyed
  kBadArgument,  ///< an argument that CUDA refuses: attributes of a batch, launch dimensions, flags
  kLegacyStream,    ///< a batch copy to the legacy default stream
  kNoKernelBody,    ///< launch of a kernel that has no body here
  kHostTouch,       ///< host_access() to device memory
  kCallInCallback,  ///< a CUDA call from a host function or a kernel body
  kBodyThrew,       ///< a kernel body or host function ended by an exception
};

/// The name of a FaultKind: "race" for kRace.
[[nodiscard]] const char* name_of(FaultKind kind);

struct Fault {
  FaultKind kind;
  std::string call;  ///< the runtime's function, such as "cudaMemcpyAsync"
  std::string text;
};

/// The faults since reset(), in the order in which they were noticed. A race is noticed at the
/// latest when both operations have run, so synchronise before this call.
[[nodiscard]] std::vector<Fault> faults();

/// One line each, sorted, for what is alive: device memory, pinned memory, registrations, streams,
/// events.
[[nodiscard]] std::vector<std::string> leaks();

/// All faults and leaks in lines, for a test's message; empty if there are none.
[[nodiscard]] std::string report();

/// Lets go of all streams, waits until they are idle, then forgets everything but kernels and their
/// bodies: memory, handles, faults, counts, settings. REQUIRES: no other thread is in a call, and
/// no host function waits forever.
void reset();

// The machine. Defaults: one device, driver 13.0, no limits.

/// 0: cudaErrorNoDevice.
void set_device_count(int count);
/// As 13000 for 13.0. 0 stands for no driver (cudaErrorInsufficientDriver); below 12080 batch
/// copies are refused with cudaErrorCallRequiresNewerDriver.
void set_driver_version(int version);
/// Of all devices. cudaDevAttrHostRegisterReadOnlySupported is 0 unless set.
void set_attribute(cudaDeviceAttr attribute, int value);
/// cudaHostRegister beyond `bytes` in all gives cudaErrorMemoryAllocation.
void set_register_limit(std::size_t bytes);
/// cudaMalloc beyond `bytes` a device gives cudaErrorMemoryAllocation.
void set_device_memory(std::size_t bytes);

// The execution.

/// Each operation is delayed by 0 to `max_delay_us`, drawn from `seed` and the stream's number.
/// (1, 200) after reset().
void set_delays(std::uint64_t seed, unsigned max_delay_us);

/// The stream starts no more operations until let_go(), or until it is destroyed.
void hold(cudaStream_t stream);
void let_go(cudaStream_t stream);

// Injected failures. A call that fails does nothing and returns `error`, with two exceptions: a
// call that frees something (cudaFree, cudaStreamDestroy ...) still frees it, and a call that waits
// (cudaStreamSynchronize ...) still waits, as after a failed kernel. Calls that only report errors
// (cudaGetLastError, cudaGetErrorName ...) are not counted and never fail.

enum class Repeat { kOnce, kForever };

/// The `nth` call (from 1, counted from now) of the function `name` fails, or all from there on.
void fail_call(const std::string& name, std::uint64_t nth, cudaError_t error,
               Repeat repeat = Repeat::kOnce);
/// The `nth` call (from 1, counted from now) of any function fails, or all from there on.
void fail_any_call(std::uint64_t nth, cudaError_t error, Repeat repeat = Repeat::kOnce);

/// The number of calls of each function since reset(); a launch counts as "cudaLaunchKernel".
[[nodiscard]] std::map<std::string, std::uint64_t> calls();
/// The sum of calls().
[[nodiscard]] std::uint64_t call_count();

/// True while this thread is in a call of the runtime, for tests in which all other code runs out
/// of memory.
[[nodiscard]] bool in_call();

/// The priorities of the existing streams of a device, ascending, without the legacy stream.
[[nodiscard]] std::vector<int> stream_priorities(int device);
/// The flags of an event.
[[nodiscard]] unsigned event_flags(cudaEvent_t event);

/// The devices that have a context, in ascending order: those that a thread chose, and those that
/// were current in a call that needs one.
[[nodiscard]] std::vector<int> contexts();

// Memory.

/// Notes that the test, as the host, reads or writes this range now. It is a fault if pending work,
/// or work that the host has not waited for, uses the range. Memory that CUDA does not know is
/// ignored.
void host_access(const void* pointer, std::size_t size, bool write);

/// In a kernel body: notes that the kernel reads or writes the range, which must be within one
/// allocation of its device or in pinned memory. Returns the address of its bytes, or nullptr after
/// a fault.
[[nodiscard]] void* device_view(const void* pointer, std::size_t size, bool write);

template <class T>
[[nodiscard]] const T* read_view(const T* pointer, std::size_t count) {
  return static_cast<const T*>(device_view(pointer, count * sizeof(T), false));
}
template <class T>
[[nodiscard]] T* write_view(T* pointer, std::size_t count) {
  return static_cast<T*>(device_view(pointer, count * sizeof(T), true));
}

// Kernels.

/// Runs once for each launch, on the stream's thread; `arguments` point to copies made at the
/// launch.
using KernelBody = std::function<void(dim3 grid, dim3 block, void** arguments)>;

/// Gives the kernel with this mangled name a body. A launch does not know the sizes of the
/// parameters, so they are given here. Replaces an earlier body; survives reset().
void register_kernel_body(const std::string& mangled_name, std::vector<std::size_t> parameter_sizes,
                          KernelBody body);

/// The same with the parameters as types: register_kernel<Job, int>("_Z4work3Jobi", body), where
/// `body` takes (dim3 grid, dim3 block, const Job&, const int&).
template <class... Parameters, class Body>
void register_kernel(const std::string& mangled_name, Body body) {
  register_kernel_body(mangled_name, {sizeof(Parameters)...},
                       [body](dim3 grid, dim3 block, void** arguments) {
                         [&]<std::size_t... I>(std::index_sequence<I...>) {
                           body(grid, block, *static_cast<const Parameters*>(arguments[I])...);
                         }
                         (std::index_sequence_for<Parameters...>{});
                       });
}

/// The mangled names of all kernels in linked objects.
[[nodiscard]] std::vector<std::string> kernel_names();

}  // namespace fake_cudart
