// SPDX-License-Identifier: Apache-2.0
// Tests with the real CUDA runtime: on a machine with a GPU the loader works, on others it throws.
#include <cuda.h>

#include <thread>

#include "tests/reader/device/machine_check.hpp"

namespace precache {
namespace {

int count_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();
  return 0;
}

bool has_context(int device) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  REQUIRE(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, 12000,
                                           cudaEnableDefault, &result) == cudaSuccess);
  REQUIRE(result == cudaDriverEntryPointSuccess);
  unsigned flags = 0;
  int active = 0;
  const auto get_state = reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(found);
  REQUIRE(get_state(device, &flags, &active) == CUDA_SUCCESS);
  return active != 0;
}

TEST_CASE("a machine without a GPU is an error", "[device]") {
  if (count_gpus() != 0) return;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  CHECK_THAT(test::message_of<Unsupported>([&] { DeviceLoader(dataset, {}); }),
             test::contains("no GPU") && test::contains("cudaError"));
}

TEST_CASE("batches reach this machine's GPU, by every path and bit for bit", "[device]") {
  if (count_gpus() == 0) return;
  std::map<DevicePath, std::string> refused;
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      for (const std::uint32_t channels : {1U, 3U, 4U}) {
        test::check_machine(test::spec_of(20, 40, channels, dtype, layout), refused);
      }
    }
  }
  for (const auto& [path, why] : refused) WARN("not checked: " << name(path) << ": " << why);
}

TEST_CASE("a loader for this machine's second GPU does not use the first", "[device]") {
  if (count_gpus() < 2) return;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  const bool before = has_context(0);
  std::thread([&] {
    LoaderOptions options;
    options.batch_size = 4;
    options.transform.dtype = DType::kFloat16;
    DeviceOptions device;
    device.device = 1;
    {
      DeviceLoader loader(dataset, options, device);
      while (auto batch = loader.next()) batch->wait();
    }
    int current = -1;
    CHECK(cudaGetDevice(&current) == cudaSuccess);
    CHECK(current == 0);
  }).join();
  CHECK(has_context(1));
  CHECK(has_context(0) == before);
}

}  // namespace
}  // namespace precache
