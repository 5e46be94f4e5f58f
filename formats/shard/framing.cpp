// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/framing.hpp"

#include <algorithm>

#include "formats/tar/tar_framing.hpp"
#include "formats/tar/ustar.hpp"
#include "formats/tfrecord/tfrecord_framing.hpp"
#include "precache/formats/error.hpp"

namespace precache {

void NameLimits::include(std::string_view key, std::int64_t label) {
  longest_key = std::max(longest_key, key.size());
  smallest_label = std::min(smallest_label, label);
  largest_label = std::max(largest_label, label);
  all_fit_ustar = all_fit_ustar && ustar::fits(key.size() + ustar::kSuffixBytes, key);
}

std::unique_ptr<const Framing> make_framing(Format format, const TensorSpec& spec,
                                            const NameLimits& limits) {
  switch (format) {
    case Format::kTar:
      return std::make_unique<TarFraming>(spec, limits);
    case Format::kTfrecord:
      return std::make_unique<TfrecordFraming>(spec, limits);
    case Format::kHdf5:
      break;
  }
  throw Unsupported("HDF5 shards are written by the library precache_hdf5");
}

}  // namespace precache
