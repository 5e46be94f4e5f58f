// SPDX-License-Identifier: Apache-2.0
#include "tests/reader/device/machine_check.hpp"

#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

TEST_CASE("the checks of a machine pass with the fake CUDA runtime", "[device]") {
  const test::FakeMachine machine;
  std::map<DevicePath, std::string> refused;
  for (const DType dtype : {DType::kUint8, DType::kBfloat16}) {
    test::check_machine(test::spec_of(20, 40, 3, dtype), refused);
  }
  CHECK(refused.empty());
}

TEST_CASE("a machine whose driver registers no mappings is checked without them", "[device]") {
  const test::FakeMachine machine;
  fake_cudart::set_attribute(cudaDevAttrHostRegisterSupported, 0);
  std::map<DevicePath, std::string> refused;
  test::check_machine(test::spec_of(20, 40, 1), refused);
  CHECK(refused.size() == 2);
  CHECK(refused.count(DevicePath::kStaged) == 0);
}

}  // namespace
}  // namespace precache
