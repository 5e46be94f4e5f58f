// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/webdataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/bytes/text.hpp"

namespace precache::tar {
namespace {

constexpr std::size_t kLargestJson = std::size_t{1} << 20;
constexpr std::size_t kLargestText = std::size_t{1} << 16;  // longer texts are not read
constexpr int kDeepestJson = 16;
constexpr std::uint64_t kMostClassTexts = 1000;

/// Null if the text is not a JSON object, or too large or deep.
nlohmann::json parse_small_object(std::string_view text) {
  using Json = nlohmann::json;
  if (text.size() > kLargestJson) return nullptr;
  bool too_deep = false;
  Json json = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kDeepestJson;
        return !too_deep;  // rejected values are not kept
      },
      false);
  if (too_deep || !json.is_object()) return nullptr;
  return json;
}

/// Describes a value that cannot be a label.
std::string kind_of(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_number_float()) return fmt::format("the number {}", value.dump());
  return fmt::format("a value of type {}", value.type_name());
}

}  // namespace

SplitName split_name(std::string_view path) {
  const std::string_view top = path.substr(0, path.find('/'));
  if (top.size() >= 4 && top.starts_with("__") && top.ends_with("__")) return {};
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base || dot + 1 == path.size()) return {};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

FoundLabel label_of_text(std::string_view text) {
  if (text.size() > kLargestText) return {{}, fmt::format("a text of {} bytes", text.size())};
  text = trimmed(text);
  const auto lines = 1 + std::ranges::count(text, '\n');
  if (lines > 1) return {{}, fmt::format("a text of {} lines", lines)};
  if (text.size() > kLongestLabel) return {{}, fmt::format("a text of {} bytes", text.size())};
  return {std::string(text), {}};
}

FoundLabel label_of_json(std::string_view text, const std::string& field) {
  const nlohmann::json json = parse_small_object(text);
  const std::vector<std::string> fields =
      field.empty() ? std::vector<std::string>{"label", "cls", "class", "target", "category"}
                    : std::vector{field};
  FoundLabel result;
  for (const std::string& name : fields) {
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) continue;
    if (found->is_number_integer()) return {found->dump(), {}};
    FoundLabel of_field{{}, kind_of(*found)};
    if (found->is_string()) of_field = label_of_text(found->get_ref<const std::string&>());
    if (!of_field.label.empty()) return of_field;
    if (!of_field.unfit.empty() && result.unfit.empty()) {
      result.unfit = fmt::format("{} in '{}'", of_field.unfit, name);
    }
  }
  return result;
}

LabelKey parse_label_key(const std::string& key) {
  if (key.starts_with("json.")) return {"json", key.substr(5)};
  return {lower(key), {}};
}

bool TextFiles::are_class_names() const {
  return too_long == 0 && different <= kMostClassTexts && different <= files / 2;
}

std::string TextFiles::text() const {
  if (too_long == 0) return fmt::format("{} .txt files hold {} different texts", files, different);
  return fmt::format("{} of {} .txt files hold several lines or more than {} bytes", too_long,
                     files, kLongestLabel);
}

}  // namespace precache::tar
