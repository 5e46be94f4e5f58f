// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convert/source/listing.hpp"

namespace precache {

/// What lay in a source and is no sample: reason, such as an extension, and count.
using LeftOut = std::map<std::string, std::uint64_t>;

/// The samples of a source with their labels.
struct Source {
  Listing listing;
  std::vector<std::string>
      classes;  // names by label; empty where labels are plain numbers or there are none
  LeftOut left_out;
};

/// How the samples of a folder get labels.
struct Labelling {
  enum class Kind { kFolder, kNone, kCsv };
  Kind kind = Kind::kFolder;
  std::filesystem::path csv;
  /// Fixed class names by label; empty: taken from the source, sorted.
  std::vector<std::string> classes;
};

/// Lists all images below `root`, or those that a CSV file names. Throws InvalidArgument where the
/// folder and the way of labelling do not fit, IoError where something cannot be read.
[[nodiscard]] Source open_source(const std::filesystem::path& root, const Labelling& labelling);

}  // namespace precache
