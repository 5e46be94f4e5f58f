// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <precache/convert/build.hpp>
#include <precache/formats/error.hpp>
#include <precache/formats/manifest.hpp>
#include <precache/formats/permutation.hpp>
#include <precache/formats/usable_threads.hpp>
#include <precache/reader/device_loader.hpp>

int main() {
  precache::Manifest manifest;
  manifest.format = precache::Format::kTar;
  manifest.recipe = precache::Recipe();
  manifest.spec = precache::Recipe().spec();
  manifest.splits["train"].shards.push_back({"train-000000.tar", 0, 1024, 0, {}});
  const auto read = precache::Manifest::from_json(manifest.to_json(), "dataset.json");
  if (read.spec.size_bytes() != 150'528) return 1;
  if (precache::Permutation(10, 0)(0) != 7) return 2;
  try {  // linked, and started, whether there is a GPU or not
    precache::DeviceLoader loader(precache::Dataset::open("there/is/no/such/folder"), {});
    return 4;
  } catch (const precache::IoError& error) {
    std::printf("%s, as it should be\n", error.what());
  }
  try {
    precache::BuildOptions options;
    options.source = "there/is/no/such/folder";
    options.out = "out";
    precache::JobProgress progress;
    static_cast<void>(precache::build(options, progress));
  } catch (const precache::IoError& error) {
    std::printf("%s, as it should be; %u threads\n", error.what(), precache::usable_threads());
    return 0;
  }
  return 3;
}
