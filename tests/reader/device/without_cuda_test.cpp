// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/error.hpp"
#include "precache/reader/device_loader.hpp"
#include "precache/tools/measure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

TEST_CASE("a build without CUDA says so", "[device]") {
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  const std::string text = test::message_of<Unsupported>([&] { DeviceLoader(dataset, {}); });
  CHECK_THAT(text, test::contains("has no CUDA"));
  CHECK(test::message_of<Unsupported>([&] { (void)measure_link(0, {}); }) == text);
  CHECK(test::message_of<Unsupported>([&] { (void)measure_device_paths(dataset, {}, {}, {}); }) ==
        text);
}

}  // namespace
}  // namespace precache
