// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/source/sample_splits.hpp"
#include "precache/convert/build.hpp"

namespace precache {

/// How a build divides its source into splits: all samples into one, by a fraction, or by a file.
class SplitRule {
 public:
  /// Borrows `options`. Throws InvalidArgument if they contradict each other, and as SplitFile
  /// does. A part, and the step that finishes, take the names of a prepared job and leave the rows
  /// of a file alone.
  explicit SplitRule(const BuildOptions& options);

  /// The splits to make.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Empty if there is one split, of all samples. Throws as SplitFile does.
  [[nodiscard]] SplitSamples split(const Listing& listing) const;

 private:
  const BuildOptions& options_;
  std::vector<std::string> prepared_;  // names; none: the file has them
  std::optional<SplitFile> file_;
};

}  // namespace precache
