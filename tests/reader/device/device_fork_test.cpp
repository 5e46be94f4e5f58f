// SPDX-License-Identifier: Apache-2.0
// A process that was forked after CUDA was used cannot use CUDA.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "precache/formats/error.hpp"
#include "reader/device/dlpack.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::by_path;
using test::FakeMachine;

struct Fixture {
  test::TempFolder folder;
  Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);  // 5, 3, 4
  LoaderOptions options;

  Fixture() {
    options.batch_size = 4;
    options.transform.dtype = DType::kFloat32;
  }
};

TEST_CASE("a forked process cannot use the loader, and can end", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  auto loader = std::make_optional<DeviceLoader>(fixture.dataset, fixture.options);
  auto batch = loader->next();
  auto exported = loader->next();
  DLManagedTensor* const tensor = exported->to_dlpack(DeviceBatch::Part::kImages, nullptr);
  exported.reset();
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::uint64_t calls = fake_cudart::call_count();
    const auto is_refused = [](const auto& use) {
      try {
        use();
      } catch (const InvalidArgument&) {
        return true;
      } catch (...) {
      }
      return false;
    };
    bool good = is_refused([&] { (void)loader->next(); });
    good = is_refused([&] { batch->wait(); }) && good;
    good = is_refused([&] { batch->wait_on(nullptr); }) && good;
    good = is_refused([&] { (void)batch->to_dlpack({}, nullptr); }) && good;
    good = is_refused([&] { batch->release(nullptr); }) && good;
    batch.reset();
    tensor->deleter(tensor);
    loader.reset();
    ::_exit(!good ? 1 : fake_cudart::call_count() != calls ? 2 : 0);  // no calls of CUDA
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  tensor->deleter(tensor);
}

/// The mappings of the dataset's shards in this process.
int mapped_shards(const Fixture& fixture) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find(fixture.folder.path().string()) != std::string::npos ? 1 : 0;
  }
  return count;
}

TEST_CASE("a forked process has no copy of registered memory", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  // The result of a forked process, as its exit status.
  const auto mapped_in_child = [&] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(mapped_shards(fixture));
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WEXITSTATUS(status);
  };
  std::optional<DeviceLoader> loader;
  loader.emplace(fixture.dataset, fixture.options, by_path(DevicePath::kGather));
  const int mapped = mapped_shards(fixture);
  CHECK(mapped >= 3);
  CHECK(mapped_in_child() == mapped - 3);
  loader.reset();
  CHECK(mapped_in_child() == mapped_shards(fixture));
}

}  // namespace
}  // namespace precache
