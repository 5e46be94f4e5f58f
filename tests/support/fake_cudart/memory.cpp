// SPDX-License-Identifier: Apache-2.0
// Device memory, pinned memory, registrations.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "state.hpp"

namespace fake_cudart {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kRange = std::size_t{64} << 30;  // addresses alone; pages come when touched

Address page_up(Address address) { return (address + kPage - 1) & ~(kPage - 1); }

/// The addresses of all devices: one file that is mapped twice, without access and for the fake.
struct DeviceRange {
  int file = -1;
  Address closed = 0;
  Address open = 0;
  std::size_t used = 0;

  DeviceRange() {
    file = memfd_create("fake_cudart", MFD_CLOEXEC);
    void* both[2] = {MAP_FAILED, MAP_FAILED};
    if (file >= 0 && ftruncate(file, static_cast<off_t>(kRange)) == 0) {
      both[0] = mmap(nullptr, kRange, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
      both[1] = mmap(nullptr, kRange, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    }
    if (both[0] == MAP_FAILED || both[1] == MAP_FAILED)
      throw std::runtime_error("fake_cudart: cannot map the range of device memory");
    closed = address_of(both[0]);
    open = address_of(both[1]);
  }

  void discard(std::size_t offset, std::size_t size) const {
    (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(size));
  }
};

DeviceRange& device_range() {
  static DeviceRange* const range = new DeviceRange;
  return *range;
}

RegionPtr add_region(RegionKind kind, Address begin, std::size_t size, int device, unsigned flags) {
  State& s = state();
  auto region = std::make_shared<Region>();
  region->kind = kind;
  region->begin = begin;
  region->size = size;
  region->device = device;
  region->flags = flags;
  region->number = ++s.regions_made;
  s.regions[begin] = region;
  return region;
}

std::size_t bytes_alive(RegionKind kind, int device) {
  std::size_t bytes = 0;
  for (const auto& entry : state().regions)
    if (entry.second->alive && entry.second->kind == kind &&
        (kind != RegionKind::kDevice || entry.second->device == device))
      bytes += entry.second->size;
  return bytes;
}

struct Protection {
  bool readable = true;
  bool writable = true;
};

/// The access that all pages of the range allow; none if a page is not mapped.
Protection protection_of(Address begin, std::size_t size) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  Protection all;
  Address next = begin;
  while (next < begin + size && std::getline(maps, line)) {
    std::istringstream fields(line);
    Address first = 0;
    Address last = 0;
    char dash = 0;
    std::string rights;
    fields >> std::hex >> first >> dash >> last >> rights;
    if (last <= next) continue;
    if (first > next) break;
    all.readable = all.readable && rights[0] == 'r';
    all.writable = all.writable && rights[1] == 'w';
    next = last;
  }
  if (next < begin + size) return {false, false};
  return all;
}

cudaError_t allocate_host(Call& call, void** pointer, std::size_t size, unsigned flags) {
  if (call.refused()) return call.result();
  const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if ((flags & ~known) != 0)
    return call.fault(FaultKind::kBadArgument, "unknown flags", cudaErrorInvalidValue);
  *pointer = nullptr;
  if (size == 0) return call.result();
  // A closed page after it traps an overrun of the host.
  void* const memory = mmap(nullptr, page_up(size) + kPage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return call.result(cudaErrorMemoryAllocation);
  mprotect(static_cast<char*>(memory) + page_up(size), kPage, PROT_NONE);
  add_region(RegionKind::kPinned, address_of(memory), size, call.device(), flags);
  *pointer = memory;
  return call.result();
}

/// The region of this kind that begins at `pointer` and is alive; nullptr after a fault.
RegionPtr find_to_free(Call& call, const void* pointer, RegionKind kind) {
  const Address begin = address_of(pointer);
  const RegionPtr region = find_region(begin);
  if (region && region->begin == begin && region->kind == kind) {
    if (region->alive) return region;
    call.fault(FaultKind::kDoubleFree, describe(*region), cudaErrorInvalidValue);
  } else if (kind == RegionKind::kRegistered && state().unregistered.count(begin) != 0) {
    call.fault(FaultKind::kDoubleFree, "the range is unregistered already",
               cudaErrorHostMemoryNotRegistered);
  } else {
    call.fault(
        FaultKind::kBadPointer,
        region ? "the pointer is not the begin of what this call frees, but in " + describe(*region)
               : "CUDA does not know the pointer",
        cudaErrorInvalidValue);
  }
  return nullptr;
}

void free_region(Call& call, Region& region) {
  call.expect_device(region.device, describe(region));
  record_host(call.name(), region, region.begin, region.end(), true);
  region.alive = false;
  region.reads.clear();
  region.writes.clear();
}

}  // namespace

RegionPtr find_region(Address address) {
  const auto& regions = state().regions;
  auto next = regions.upper_bound(address);
  if (next == regions.begin()) return nullptr;
  const RegionPtr& region = std::prev(next)->second;
  return address < region->end() ? region : nullptr;
}

bool in_device_range(Address address) {
  const DeviceRange& range = device_range();
  return address >= range.closed && address - range.closed < kRange;
}

std::byte* bytes_at(Address address) {
  const DeviceRange& range = device_range();
  if (in_device_range(address)) address = address - range.closed + range.open;
  return reinterpret_cast<std::byte*>(address);
}

bool is_mapped(Address begin, std::size_t size) {
  const Address first = begin & ~(kPage - 1);
  return msync(reinterpret_cast<void*>(first), begin + size - first, MS_ASYNC) == 0;
}

std::string describe(const Region& region) {
  const char* kind = region.kind == RegionKind::kDevice   ? "device memory"
                     : region.kind == RegionKind::kPinned ? "pinned memory"
                                                          : "registered memory";
  return std::string(region.alive ? "" : "freed ") + kind + " #" + std::to_string(region.number) +
         " (" + std::to_string(region.size) + " bytes, device " + std::to_string(region.device) +
         ")";
}

void drop_all_memory() {
  for (const auto& entry : state().regions)
    if (entry.second->kind == RegionKind::kPinned)
      munmap(reinterpret_cast<void*>(entry.first), page_up(entry.second->size) + kPage);
  DeviceRange& range = device_range();
  range.discard(0, range.used);
  range.used = 0;
}

}  // namespace fake_cudart

using namespace fake_cudart;

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t size) {
  Call call("cudaMalloc");
  if (call.refused()) return call.result();
  *pointer = nullptr;
  if (size == 0) return call.result();
  DeviceRange& range = device_range();
  const std::size_t in_use = bytes_alive(RegionKind::kDevice, call.device());
  if (size > state().settings.device_memory || in_use > state().settings.device_memory - size ||
      size > kRange - 2 * kPage - range.used)
    return call.result(cudaErrorMemoryAllocation);
  const Address begin = range.closed + range.used;
  range.used += page_up(size) + kPage;  // a gap, so that neighbours are never one range
  add_region(RegionKind::kDevice, begin, size, call.device(), 0);
  // New memory is not zero on a GPU. A megabyte shows it and does not make huge rings real.
  std::memset(bytes_at(begin), 0xA5, std::min<std::size_t>(size, 1 << 20));
  *pointer = reinterpret_cast<void*>(begin);
  return call.result();
}

cudaError_t cudaFree(void* pointer) {
  Call call("cudaFree", Call::Kind::kGivesBack);
  if (call.refused() || pointer == nullptr) return call.result();
  const RegionPtr region = find_to_free(call, pointer, RegionKind::kDevice);
  if (!region) return call.result();
  free_region(call, *region);
  device_range().discard(region->begin - device_range().closed, page_up(region->size));
  return call.result();
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t size, unsigned flags) {
  Call call("cudaHostAlloc");
  return allocate_host(call, pointer, size, flags);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t size) {
  Call call("cudaMallocHost");
  return allocate_host(call, pointer, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  Call call("cudaFreeHost", Call::Kind::kGivesBack);
  if (call.refused() || pointer == nullptr) return call.result();
  const RegionPtr region = find_to_free(call, pointer, RegionKind::kPinned);
  if (!region) return call.result();
  free_region(call, *region);
  // The addresses stay taken until reset(), closed: a late use by the host traps.
  (void)mmap(pointer, page_up(region->size), PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return call.result();
}

cudaError_t cudaHostRegister(void* pointer, std::size_t size, unsigned flags) {
  Call call("cudaHostRegister");
  if (call.refused()) return call.result();
  const unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
                         cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  if (pointer == nullptr || size == 0 || (flags & ~known) != 0)
    return call.fault(FaultKind::kBadArgument, "no memory, or unknown flags",
                      cudaErrorInvalidValue);
  const bool read_only = (flags & cudaHostRegisterReadOnly) != 0;
  if (attribute_of(cudaDevAttrHostRegisterSupported) == 0 ||
      (read_only && attribute_of(cudaDevAttrHostRegisterReadOnlySupported) == 0))
    return call.result(cudaErrorNotSupported);
  const Address begin = address_of(pointer);
  const auto next = state().regions.lower_bound(begin);
  const bool next_overlaps = next != state().regions.end() && next->first - begin < size;
  if (find_region(begin) || next_overlaps) return call.result(cudaErrorHostMemoryAlreadyRegistered);
  const Protection protection = protection_of(begin, size);
  if (!protection.readable || (!protection.writable && !read_only))
    return call.result(cudaErrorInvalidValue);
  const std::size_t limit = state().settings.register_limit;
  if (size > limit || bytes_alive(RegionKind::kRegistered, 0) > limit - size)
    return call.result(cudaErrorMemoryAllocation);
  add_region(RegionKind::kRegistered, begin, size, call.device(), flags)->writable = !read_only;
  state().unregistered.erase(begin);
  // Like pinning: private pages become the process's own. Old kernels do not support that.
  if (!read_only) (void)::madvise(pointer, size, MADV_POPULATE_WRITE);
  return call.result();
}

cudaError_t cudaHostUnregister(void* pointer) {
  Call call("cudaHostUnregister", Call::Kind::kGivesBack);
  if (call.refused()) return call.result();
  const RegionPtr region = find_to_free(call, pointer, RegionKind::kRegistered);
  if (!region) return call.result();
  if (!is_mapped(region->begin, region->size))
    add_fault(FaultKind::kFreed, call.name(),
              "cudaHostUnregister: the range was unmapped while it was registered");
  free_region(call, *region);
  state().regions.erase(region->begin);
  state().unregistered.insert(region->begin);
  return call.result();
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  Call call("cudaHostGetDevicePointer");
  if (call.refused()) return call.result();
  const RegionPtr region = find_region(address_of(pointer));
  if (flags != 0 || !region || !region->alive || region->kind == RegionKind::kDevice)
    return call.fault(FaultKind::kBadPointer, "not pinned memory", cudaErrorInvalidValue);
  *device_pointer = pointer;
  return call.result();
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  Call call("cudaPointerGetAttributes");
  if (call.refused()) return call.result();
  *attributes = cudaPointerAttributes{};
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = cudaInvalidDeviceId;
  attributes->hostPointer = const_cast<void*>(pointer);
  const RegionPtr region = find_region(address_of(pointer));
  if (!region || !region->alive) return call.result();
  const bool on_device = region->kind == RegionKind::kDevice;
  attributes->type = on_device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attributes->device = region->device;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (on_device) attributes->hostPointer = nullptr;
  return call.result();
}

}  // extern "C"
