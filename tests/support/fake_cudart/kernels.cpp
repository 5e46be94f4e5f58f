// SPDX-License-Identifier: Apache-2.0
// Kernels: what nvcc's host code tells about them, launching them, and their bodies.
#include <algorithm>
#include <cstring>
#include <utility>

#include "state.hpp"

namespace fake_cudart {

namespace {

/// A launch's arguments, kept as CUDA keeps them: by value, at the time of the launch.
class Arguments {
 public:
  Arguments(const std::vector<std::size_t>& sizes, void** arguments) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      values_.emplace_back((sizes[i] + sizeof(Chunk) - 1) / sizeof(Chunk));
      std::memcpy(values_.back().data(), arguments[i], sizes[i]);
    }
  }
  [[nodiscard]] std::vector<void*> pointers() {
    std::vector<void*> pointers;
    for (auto& value : values_) pointers.push_back(value.data());
    return pointers;
  }

 private:
  struct alignas(64) Chunk {
    std::byte bytes[64];
  };
  std::vector<std::vector<Chunk>> values_;
};

bool bad_launch(dim3 grid, dim3 block, std::size_t shared_size) {
  const auto limit = [](cudaDeviceAttr attribute) {
    return static_cast<unsigned>(attribute_of(attribute));
  };
  const auto within = [](unsigned size, unsigned most) { return size >= 1 && size <= most; };
  return !within(grid.x, limit(cudaDevAttrMaxGridDimX)) ||
         !within(grid.y, limit(cudaDevAttrMaxGridDimY)) ||
         !within(grid.z, limit(cudaDevAttrMaxGridDimZ)) ||
         !within(block.x, limit(cudaDevAttrMaxBlockDimX)) ||
         !within(block.y, limit(cudaDevAttrMaxBlockDimY)) ||
         !within(block.z, limit(cudaDevAttrMaxBlockDimZ)) ||
         std::uint64_t{block.x} * block.y * block.z > limit(cudaDevAttrMaxThreadsPerBlock) ||
         shared_size > limit(cudaDevAttrMaxSharedMemoryPerBlock);
}

cudaError_t launch(Call& call, const Kernel* kernel, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_size, cudaStream_t handle) {
  const StreamPtr stream = find_stream(call, handle);
  if (!stream) return call.result();
  if (stream->device != call.device())
    return call.fault(FaultKind::kWrongDevice, "a launch in a stream of another device",
                      cudaErrorInvalidResourceHandle);
  if (bad_launch(grid, block, shared_size))
    return call.fault(FaultKind::kBadArgument, "dimensions that the device does not have",
                      cudaErrorInvalidConfiguration);
  const auto body = kernel != nullptr ? state().bodies.find(kernel->name) : state().bodies.end();
  if (body == state().bodies.end())
    return call.fault(
        FaultKind::kNoKernelBody,
        kernel != nullptr ? kernel->name + " has no body" : "no kernel of any linked object",
        cudaErrorInvalidDeviceFunction);
  auto kept = std::make_shared<Arguments>(body->second.parameter_sizes, arguments);
  const OpPtr op = new_op(call.name(), *stream);
  op->unlocked_work = [kept, run = body->second.run, grid, block] {
    std::vector<void*> pointers = kept->pointers();
    run(grid, block, pointers.data());
  };
  push(stream, op);
  return call.result();
}

const Kernel* find_kernel(const void* stub) {
  const auto found = state().kernels.find(stub);
  return found != state().kernels.end() ? &found->second : nullptr;
}

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_size;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

}  // namespace

void* device_view(const void* pointer, std::size_t size, bool write) {
  const Lock lock(state().mutex);
  const OpPtr op = this_thread().running;
  const auto refuse = [](FaultKind kind, const std::string& text) -> void* {
    add_fault(kind, "device_view", "a kernel uses " + text);
    return nullptr;
  };
  if (!op) return refuse(FaultKind::kHostTouch, "nothing: device_view() was called by the host");
  const Address begin = address_of(pointer);
  const RegionPtr region = find_region(begin);
  if (!region)
    return refuse(FaultKind::kBadPointer, "memory that is neither on a device nor pinned");
  if (!region->alive) return refuse(FaultKind::kFreed, describe(*region));
  if (size > region->end() - begin)
    return refuse(FaultKind::kOutOfBounds, std::to_string(size) + " bytes at offset " +
                                               std::to_string(begin - region->begin) + " of " +
                                               describe(*region));
  if (region->kind == RegionKind::kDevice && region->device != op->device)
    return refuse(FaultKind::kWrongDevice,
                  describe(*region) + " on device " + std::to_string(op->device));
  if (write && !region->writable)
    return refuse(FaultKind::kBadPointer, "memory to write that is registered as read-only");
  record(*region, {begin, begin + size, op, false}, write);
  return bytes_at(begin);
}

void register_kernel_body(const std::string& mangled_name, std::vector<std::size_t> parameter_sizes,
                          KernelBody body) {
  const Lock lock(state().mutex);
  state().bodies[mangled_name] = {std::move(parameter_sizes), std::move(body)};
}

std::vector<std::string> kernel_names() {
  const Lock lock(state().mutex);
  std::vector<std::string> names;
  for (const auto& entry : state().kernels) names.push_back(entry.second.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace fake_cudart

using namespace fake_cudart;

extern "C" {

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_size, cudaStream_t stream) {
  Call call("cudaLaunchKernel");
  if (call.refused()) return call.result();
  return launch(call, find_kernel(stub), grid, block, arguments, shared_size, stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  Call call("cudaFuncGetAttributes");
  if (call.refused()) return call.result();
  if (find_kernel(stub) == nullptr) return call.result(cudaErrorInvalidDeviceFunction);
  *attributes = cudaFuncAttributes{};
  attributes->maxThreadsPerBlock = attribute_of(cudaDevAttrMaxThreadsPerBlock);
  attributes->numRegs = 32;
  attributes->ptxVersion = 90;
  attributes->binaryVersion = 90;
  return call.result();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                   int block_size, std::size_t,
                                                                   unsigned) {
  Call call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (call.refused()) return call.result();
  if (find_kernel(stub) == nullptr) return call.result(cudaErrorInvalidDeviceFunction);
  if (block_size < 1) return call.result(cudaErrorInvalidValue);
  *blocks = std::min(32, attribute_of(cudaDevAttrMaxThreadsPerMultiProcessor) / block_size);
  return call.result();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub,
                                                          int block_size, std::size_t shared_size) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, block_size,
                                                                shared_size, 0);
}

// Functions that the host code of nvcc 13 calls; no header declares them.

void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) { delete handle; }

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, void*, void*,
                            void*, void*, int*) {
  const Lock lock(state().mutex);
  state().kernels[stub] = Kernel{name};
}

void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

char __cudaInitModule(void**) { return 1; }

cudaError_t __cudaGetKernel(const void** kernel, const void* stub) {
  const Lock lock(state().mutex);
  *kernel = find_kernel(stub);
  return *kernel != nullptr ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t __cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_size, cudaStream_t stream) {
  Call call("cudaLaunchKernel");
  if (call.refused()) return call.result();
  return launch(call, static_cast<const Kernel*>(kernel), grid, block, arguments, shared_size,
                stream);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_size,
                                     cudaStream_t stream) {
  configurations.push_back({grid, block, shared_size, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_size,
                                       void* stream) {
  if (configurations.empty()) return cudaErrorMissingConfiguration;
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_size = last.shared_size;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

}  // extern "C"
