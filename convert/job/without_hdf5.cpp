// SPDX-License-Identifier: Apache-2.0

// Takes the place of the library precache_hdf5 in a build without it.

#include "formats/hdf5/hdf5_encoded.hpp"
#include "formats/hdf5/hdf5_framing.hpp"
#include "formats/hdf5/hdf5_images.hpp"
#include "formats/hdf5/hdf5_virtual.hpp"
#include "precache/formats/error.hpp"

namespace precache {

void check_encoded_hdf5() {
  throw Unsupported("this build has no HDF5",
                    "Build with PRECACHE_WITH_HDF5, or set `format` to another one.");
}

std::unique_ptr<const Framing> make_hdf5_framing(const TensorSpec&, const NameLimits&,
                                                 const std::vector<std::string>&) {
  check_encoded_hdf5();
  return nullptr;
}

std::unique_ptr<EncodedShard> make_encoded_hdf5(const std::filesystem::path&, const NameLimits&,
                                                const std::vector<std::string>&) {
  check_encoded_hdf5();
  return nullptr;
}

void hdf5::write_virtual_file(const std::filesystem::path&, const VirtualShards&) {
  check_encoded_hdf5();
}

bool hdf5::is_virtual_file(const std::filesystem::path&) { return false; }

void hdf5::read_rows(std::span<const std::byte>, const std::filesystem::path&, const ImageRows&,
                     const std::function<void(std::span<const std::byte>)>&) {
  check_encoded_hdf5();
}

}  // namespace precache
