// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_formats.hpp"

#include "formats/hdf5/hdf5_encoded.hpp"
#include "formats/hdf5/hdf5_framing.hpp"

namespace precache {

std::unique_ptr<const Framing> make_framing(Format format, const TensorSpec& spec,
                                            const NameLimits& limits,
                                            const std::vector<std::string>& classes) {
  return format == Format::kHdf5 ? make_hdf5_framing(spec, limits, classes)
                                 : make_framing(format, spec, limits);
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

}  // namespace precache
