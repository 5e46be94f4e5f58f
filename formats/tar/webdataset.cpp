// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/webdataset.hpp"

#include <nlohmann/json.hpp>

namespace precache::tar {
namespace {

constexpr std::size_t kLargestJson = std::size_t{1} << 20;
constexpr int kDeepestJson = 16;

/// Null if it is no object, or too large or deep.
nlohmann::json parse_small_object(std::string_view text) {
  using Json = nlohmann::json;
  if (text.size() > kLargestJson) return nullptr;
  bool too_deep = false;
  Json json = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kDeepestJson;
        return !too_deep;  // what is refused is not kept
      },
      false);
  if (too_deep || !json.is_object()) return nullptr;
  return json;
}

}  // namespace

SplitName split_name(std::string_view path) {
  const std::string_view top = path.substr(0, path.find('/'));
  if (top.size() >= 4 && top.starts_with("__") && top.ends_with("__")) return {};
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base) return {};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::string> label_of_json(std::string_view text, const std::string& field) {
  const nlohmann::json json = parse_small_object(text);
  const std::vector<std::string> fields =
      field.empty() ? std::vector<std::string>{"label", "cls", "class", "target", "category"}
                    : std::vector{field};
  for (const std::string& name : fields) {
    const auto found = json.find(name);
    if (found == json.end()) continue;
    if (found->is_number_integer()) return found->dump();
    if (found->is_string()) return found->get<std::string>();
  }
  return std::nullopt;
}

}  // namespace precache::tar
