// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "precache/convert/build.hpp"

namespace precache {

/// What the user is told where an earlier run had finished the same job, and how that was found.
[[nodiscard]] inline std::string complete_text(const std::filesystem::path& out,
                                               SourceComparison compared) {
  std::string text = out.string() + ": complete already, nothing to do: ";
  switch (compared) {
    case SourceComparison::kNames:
      return text +
             "the source has the same names, sizes and labels (its content was not compared)";
    case SourceComparison::kTimes:
      return text + "the source has the same names, sizes, labels and modification times";
    case SourceComparison::kContent:
      return text + "the source has the same names, labels and content, which was read";
    case SourceComparison::kManifest:
      return text + "the source has the same manifest";
  }
  return text;
}

}  // namespace precache
