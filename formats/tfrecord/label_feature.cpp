// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/label_feature.hpp"

#include <fmt/format.h>

#include "formats/shard/limits.hpp"

namespace precache::tfrecord {

std::string unfit_label(const Feature& feature) {
  if (feature.kind == FeatureKind::kFloats) return fmt::format("'{}' holds floats", feature.name);
  if (feature.kind == FeatureKind::kNone) return fmt::format("'{}' is empty", feature.name);
  if (feature.kind == FeatureKind::kIntegers && feature.count > Feature::kMostIntegers) {
    return fmt::format("'{}' has more than {} values", feature.name, Feature::kMostIntegers);
  }
  if (feature.count != 1) return fmt::format("'{}' has {} values", feature.name, feature.count);
  if (feature.kind == FeatureKind::kBytes && feature.bytes.size() > kLongestLabel) {
    return fmt::format("'{}' is a text of {} bytes", feature.name, feature.bytes.size());
  }
  return {};
}

}  // namespace precache::tfrecord
