// SPDX-License-Identifier: Apache-2.0
#include "cli/say.hpp"

#include <nlohmann/json.hpp>

namespace precache {

void print_json(const nlohmann::ordered_json& json) {
  using Json = nlohmann::ordered_json;
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace precache
