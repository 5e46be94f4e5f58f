// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/framing.hpp"

#include <algorithm>

#include "formats/tar/ustar.hpp"
#include "precache/formats/error.hpp"

namespace precache {

void NameLimits::include(std::string_view key, std::int64_t label) {
  longest_key = std::max(longest_key, key.size());
  smallest_label = std::min(smallest_label, label);
  largest_label = std::max(largest_label, label);
  all_fit_ustar = all_fit_ustar && ustar::fits(key.size() + ustar::kSuffixBytes, key);
}

Framing::Framing(std::vector<NamedColumn> named) : named_(std::move(named)) {
  validate(named_);
  values_bytes_ = precache::values_bytes(named_);
}

std::unique_ptr<const Framing> make_framing(Format format, const TensorSpec& spec,
                                            const NameLimits& limits,
                                            const std::vector<NamedColumn>& named) {
  if (format == Format::kTar) return make_tar_framing(spec, limits, named);
  if (format == Format::kTfrecord) return make_tfrecord_framing(spec, limits, named);
  throw Unsupported("HDF5 shards are written by the library precache_hdf5");
}

}  // namespace precache
