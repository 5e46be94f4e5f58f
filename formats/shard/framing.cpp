// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/framing.hpp"

#include <algorithm>

#include "formats/hdf5/hdf5_framing.hpp"
#include "formats/tar/tar_framing.hpp"
#include "formats/tar/ustar.hpp"
#include "formats/tfrecord/tfrecord_framing.hpp"

namespace precache {

void NameLimits::include(std::string_view key, std::int64_t label) {
  longest_key = std::max(longest_key, key.size());
  smallest_label = std::min(smallest_label, label);
  largest_label = std::max(largest_label, label);
  all_fit_ustar = all_fit_ustar && ustar::fits(key.size() + ustar::kSuffixBytes, key);
}

std::unique_ptr<const Framing> make_framing(Format format, const TensorSpec& spec,
                                            const NameLimits& limits,
                                            const std::vector<std::string>& classes) {
  switch (format) {
    case Format::kTar:
      return std::make_unique<TarFraming>(spec, limits);
    case Format::kTfrecord:
      return std::make_unique<TfrecordFraming>(spec, limits);
    case Format::kHdf5:
      return make_hdf5_framing(spec, limits, classes);
  }
  return nullptr;
}

}  // namespace precache
