// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <precache/reader.hpp>

static_assert(PRECACHE_VERSION_MAJOR * 100 + PRECACHE_VERSION_MINOR > 0 &&
              !precache::kVersion.empty());

int main() {
  try {
    precache::Loader loader(precache::Dataset::open("there/is/no/such/folder"));
    const auto batch = loader.next();
    return batch ? int(batch->as<float>()[0][0]) : 2;
  } catch (const precache::IoError& error) {
    std::printf("%s, as it should be\n", error.what());
    return 0;
  }
}
