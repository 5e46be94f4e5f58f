// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/framing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/tar/tar_framing.hpp"
#include "formats/tar/ustar.hpp"
#include "formats/tfrecord/tfrecord_framing.hpp"
#include "precache/formats/error.hpp"

namespace precache {

std::string_view name(Format format) {
  switch (format) {
    case Format::kTar:
      return "tar";
    case Format::kTfrecord:
      return "tfrecord";
    case Format::kHdf5:
      return "hdf5";
  }
  return {};
}

std::string_view extension(Format format) {
  switch (format) {
    case Format::kTar:
      return ".tar";
    case Format::kTfrecord:
      return ".tfrecord";
    case Format::kHdf5:
      return ".h5";
  }
  return {};
}

Format parse_format(std::string_view text) {
  for (const Format format : {Format::kTar, Format::kTfrecord, Format::kHdf5}) {
    if (name(format) == text) return format;
  }
  throw InvalidArgument(fmt::format("unknown format '{}'", text),
                        "Known are tar, tfrecord and hdf5.");
}

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
