// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace precache {

/// The range of all labels.
struct LabelRange {
  std::int64_t smallest = 0;
  std::int64_t largest = 0;
};

/// The space that keys and labels need in a record, so that one record size fits all samples of a
/// split.
class NameLimits {
 public:
  /// Makes room for one more sample.
  void include(std::string_view key, std::int64_t label);
  bool operator==(const NameLimits&) const = default;

  std::size_t longest_key = 1;
  std::int64_t smallest_label = 0;
  std::int64_t largest_label = 0;
  bool all_fit_ustar = true;
};

}  // namespace precache
