// SPDX-License-Identifier: Apache-2.0
// HDF5 files. The library that parses them has known faults,
// which run.sh separates from those of precache.
#include "formats/bytes/little_endian.hpp"
#include "formats/hdf5/hdf5_readers.hpp"
#include "formats/hdf5/helper/helper_message.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/read_index.hpp"

namespace {

using namespace precache;

/// Changes a number that is smaller than the file: an address, a size or an extent. Metadata is
/// dense, so there are many.
void change_number(std::span<std::uint8_t> file, std::minstd_rand& random) {
  if (file.size() < 8) return;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const auto place = file.subspan(random() % (file.size() - 7), 8);
    const std::uint64_t value = little_endian(std::as_bytes(place));
    if (value == 0 || value > file.size()) continue;
    std::uint64_t other = fuzz::other_number(value, random);
    for (std::uint8_t& byte : place) {
      byte = static_cast<std::uint8_t>(other);
      other >>= 8;
    }
    return;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  std::minstd_rand random(seed);
  change_number({data, size}, random);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::bytes_of(data, size);
  if (file.empty()) return 0;
  fuzz::may_refuse([&] { (void)hdf5::survey(file, "fuzz.h5"); });
  fuzz::may_refuse_source([&] {
    const auto rows = hdf5::find_images(file, "fuzz.h5", {});
    (void)hdf5::decode<hdf5::ImageRows>(hdf5::encode(rows), "fuzz.h5", file.size());
  });
  const auto index = fuzz::scanned([&] { return hdf5::scan(file, "fuzz.h5"); });
  fuzz::read_all(index, file);
  if (!index) return 0;
  const ShardIndex received =
      hdf5::decode<ShardIndex>(hdf5::encode(*index), "fuzz.h5", file.size());
  fuzz::expect(received.places == index->places && received.columns == index->columns &&
                   received.keys == index->keys && received.spec == index->spec,
               "an index arrives as it was sent");
  return 0;
}
