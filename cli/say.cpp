// SPDX-License-Identifier: Apache-2.0
#include "cli/say.hpp"

#include <nlohmann/json.hpp>

namespace precache {

void print_json(const nlohmann::ordered_json& json) {
  using OnBadText = nlohmann::ordered_json::error_handler_t;
  const std::string text = json.dump(2, ' ', false, OnBadText::replace) + '\n';
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace precache
