// SPDX-License-Identifier: Apache-2.0
// A separate program, because it counts every allocation of the process, on any thread.
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/datasets.hpp"

namespace {

std::atomic<std::uint64_t> allocations{0};

}  // namespace

// Sanitizers have their own allocator.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"

#endif

namespace precache {
namespace {

using test::TempFolder;

constexpr std::uint64_t kBatches = 100;

struct Case {
  const char* name;
  Shuffle shuffle;
  BatchTransform transform;
  bool writes = false;
  unsigned threads = 3;
};

/// The allocations of one epoch, after some epochs to warm up. The consumer holds one batch at a
/// time.
std::uint64_t allocations_of(Loader& loader, bool writes) {
  std::uint64_t before = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    before = allocations;
    while (auto batch = loader.next()) {
      if (writes) *batch->make_writable() = std::byte{1};
    }
  }
  return allocations - before;
}

TEST_CASE("allocations are counted", "[reader][allocation]") {
  if (test::kSanitized) PRECACHE_SKIP("sanitizers have their own allocator");
  const std::uint64_t before = allocations;
  delete new volatile int(1);
  std::free(std::aligned_alloc(64, 64));
  const std::vector<int> numbers(10);
  CHECK(allocations - before >= 3 - (numbers.empty() ? 1 : 0));
}

TEST_CASE("a warm loader allocates nothing", "[reader][allocation]") {
  if (test::kSanitized) PRECACHE_SKIP("sanitizers have their own allocator");
  BatchTransform half;
  half.dtype = DType::kFloat16;
  BatchTransform whole_way;
  whole_way.crop = Crop{16, 16};
  whole_way.flip = true;
  whole_way.normalize = Normalization{{0.5F, 0.5F, 0.5F}, {0.2F, 0.2F, 0.2F}};
  whole_way.dtype = DType::kFloat16;
  whole_way.layout = Layout::kHwc;
  const std::vector<Case> cases{{"sequential", Shuffle::kNone, {}},
                                {"sequential, written to", Shuffle::kNone, {}, true},
                                {"block", Shuffle::kBlock, {}},
                                {"full", Shuffle::kFull, {}},
                                {"full, one thread", Shuffle::kFull, {}, false, 1},
                                {"sequential float16", Shuffle::kNone, half},
                                {"full, all transforms", Shuffle::kFull, whole_way}};
  const TempFolder folder;
  for (const Format format : test::kFormats) {
    const auto made = test::make_dataset(folder / std::string(name(format)),
                                         {.format = format,
                                          .spec = test::spec_of(20, 20, 3),
                                          .shards = {kBatches * 3, kBatches * 4, kBatches}});
    const Dataset dataset = Dataset::open(made.folder);
    for (const Case& each : cases) {
      LoaderOptions options;
      options.batch_size = 8;
      options.order.shuffle = each.shuffle;
      options.transform = each.transform;
      options.threads = each.threads;
      Loader loader(dataset, options);
      REQUIRE(loader.batches_left() == kBatches);
      const std::uint64_t count = allocations_of(loader, each.writes);
      CAPTURE(name(format), each.name);
      // A pipeline that was never so full before may still allocate slots; batches allocate
      // nothing.
      CHECK(count <= 12);
    }
  }
}

}  // namespace
}  // namespace precache
