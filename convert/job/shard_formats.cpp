// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_formats.hpp"

#include "formats/hdf5/hdf5_readers.hpp"
#include "formats/hdf5/hdf5_writers.hpp"
#include "precache/formats/error.hpp"

namespace precache {

std::unique_ptr<const Framing> make_framing(Format format, const TensorSpec& spec,
                                            const NameLimits& limits,
                                            const std::vector<std::string>& classes,
                                            const std::vector<NamedColumn>& named) {
  return format == Format::kHdf5 ? make_hdf5_framing(spec, limits, classes, named)
                                 : make_framing(format, spec, limits, named);
}

void check_encoded_format(Format format) {
  if (format == Format::kHdf5) check_encoded_hdf5();
}

std::unique_ptr<EncodedShard> make_encoded_shard(Format format, const std::filesystem::path& path,
                                                 const NameLimits& limits,
                                                 const std::vector<std::string>& classes) {
  return format == Format::kHdf5 ? make_encoded_hdf5(path, limits, classes)
                                 : make_encoded_shard(format, path);
}

#ifndef PRECACHE_WITH_HDF5  // these replace the library precache_hdf5

namespace {

[[noreturn]] void refuse() {
  throw Unsupported("this build has no HDF5",
                    "Build with PRECACHE_WITH_HDF5, or choose another `format`.");
}

}  // namespace

void check_encoded_hdf5() { refuse(); }

std::unique_ptr<const Framing> make_hdf5_framing(const TensorSpec&, const NameLimits&,
                                                 const std::vector<std::string>&,
                                                 const std::vector<NamedColumn>&) {
  refuse();
}

std::unique_ptr<EncodedShard> make_encoded_hdf5(const std::filesystem::path&, const NameLimits&,
                                                const std::vector<std::string>&) {
  refuse();
}

void hdf5::write_virtual_file(const std::filesystem::path&, const VirtualShards&) { refuse(); }

bool hdf5::is_virtual_file(const std::filesystem::path&) { return false; }

void hdf5::read_rows(std::span<const std::byte>, const std::filesystem::path&, const ImageRows&,
                     const std::function<void(std::span<const std::byte>)>&) {
  refuse();
}

#endif

}  // namespace precache
