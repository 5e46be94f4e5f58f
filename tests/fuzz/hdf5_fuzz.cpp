// SPDX-License-Identifier: Apache-2.0
// HDF5 files. The library that parses them has faults of its own, which run.sh tells from ours.
#include "formats/hdf5/hdf5_scan.hpp"
#include "formats/hdf5/scan_message.hpp"
#include "tests/fuzz/read_index.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace precache;
  const auto file = fuzz::bytes_of(data, size);
  if (file.empty()) return 0;
  fuzz::may_refuse([&] {
    const ShardIndex index = hdf5::scan(file, "fuzz.h5");
    fuzz::read_all(index, file);
    const ShardIndex received = hdf5::decode(hdf5::encode(index), "fuzz.h5", file.size());
    fuzz::expect(received.places == index.places && received.columns == index.columns &&
                     received.keys == index.keys && received.spec == index.spec,
                 "an index arrives as it was sent");
  });
  return 0;
}
