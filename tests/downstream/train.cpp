// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <precache/formats/error.hpp>
#include <precache/reader/loader.hpp>

int main() {
  try {
    precache::Loader loader(precache::Dataset::open("there/is/no/such/folder"));
    return loader.next() ? 1 : 2;
  } catch (const precache::IoError& error) {
    std::printf("%s, as it should be\n", error.what());
    return 0;
  }
}
