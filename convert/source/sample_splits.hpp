// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convert/source/label_files.hpp"
#include "convert/source/listing.hpp"

namespace precache {

/// The samples of each split, as numbers in the listing in ascending order.
using SplitSamples = std::map<std::string, std::vector<std::uint64_t>>;

/// Splits samples into `train` and `val`. From each class, val gets the share `val_fraction`,
/// rounded: the samples whose hashes of `seed` and path are smallest. So the order of the listing
/// does not matter, and a sample that is added to a class moves at most one other. Samples without
/// labels count as one class.
///
/// Throws InvalidArgument if one of the splits would be empty.  REQUIRES: 0 < val_fraction < 1.
[[nodiscard]] SplitSamples split_by_fraction(const Listing& listing, double val_fraction,
                                             std::uint64_t seed);

/// A CSV file of paths and the names of their splits. A path of `*` stands for all samples that the
/// file does not list.
class SplitFile {
 public:
  /// Throws InvalidArgument if a line is malformed, a path is outside `root` or comes twice, and
  /// IoError.
  SplitFile(std::filesystem::path file, const std::filesystem::path& root);

  /// All splits that the file names, in alphabetical order.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Throws InvalidArgument for a sample that the file does not list, a line for which there is no
  /// sample, and a split without samples.
  [[nodiscard]] SplitSamples split(const Listing& listing) const;

 private:
  std::filesystem::path file_;
  std::vector<CsvLabel> rows_;            // the label is the name of a split
  std::optional<std::string> all_other_;  // the split of `*`
  std::vector<std::string> names_;
};

}  // namespace precache
