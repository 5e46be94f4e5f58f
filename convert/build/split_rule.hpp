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
  /// does.
  explicit SplitRule(const BuildOptions& options);

  /// The splits to make.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Empty if there is one split, of all samples. Throws InvalidArgument.
  [[nodiscard]] SplitSamples split(const Listing& listing) const;

 private:
  const BuildOptions& options_;
  std::optional<SplitFile> file_;
};

}  // namespace precache
