// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_scan.hpp"

#include "precache/formats/error.hpp"

namespace precache::hdf5 {

ShardIndex scan(std::span<const std::byte>, const std::filesystem::path&) {
  throw Unsupported("HDF5 files cannot be read without their manifest yet");
}

}  // namespace precache::hdf5
