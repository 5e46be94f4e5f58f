// SPDX-License-Identifier: Apache-2.0
#include "cli/labels_text.hpp"

#include <fmt/format.h>

#include "formats/bytes/number_text.hpp"

namespace precache {

std::string labels_text(std::uint64_t classes, const std::optional<LabelRange>& labels) {
  if (classes != 0) return human::count(classes, "class");
  if (!labels) return "no labels";
  return fmt::format("labels {} to {}, no names", labels->smallest, labels->largest);
}

nlohmann::ordered_json labels_json(const std::optional<LabelRange>& labels) {
  if (!labels) return nullptr;
  return nlohmann::ordered_json::array({labels->smallest, labels->largest});
}

}  // namespace precache
