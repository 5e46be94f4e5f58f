// SPDX-License-Identifier: Apache-2.0
#include "convert/source/label_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "formats/bytes/text.hpp"
#include "formats/bytes/utf8.hpp"
#include "precache/formats/error.hpp"

namespace precache {
ClassNumbers::ClassNumbers(const std::vector<std::string>& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    numbers_.emplace(classes[i], static_cast<std::int64_t>(i));
  }
}

std::int64_t ClassNumbers::of(const std::string& name, const std::string& where) const {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  throw InvalidArgument(
      fmt::format("the class '{}' is not known ({})", name, where),
      "It is not one of the class names given by `classes` or by the dataset in `out`.");
}

void LabelTexts::add(std::string_view text) {
  const auto next = static_cast<std::uint32_t>(texts_.size());
  const auto [known, is_new] = known_.emplace(text, next);
  if (is_new) texts_.push_back({std::string(text), samples_.size()});
  samples_.push_back(known->second);
}

void LabelTexts::append(const LabelTexts& other) {
  for (const std::uint32_t text : other.samples_) add(other.texts_[text].text);
}

namespace {

/// Whether a text is a number as programs write those that are not integers: 0.5, 1e-05, nan, +3.
bool is_other_number(std::string_view text) {
  const bool has_plus = text.starts_with('+');
  const std::string_view digits = text.substr(has_plus || text.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits[0] == '+' || digits[0] == '-') return false;
  if (digits.find_first_not_of("0123456789") == std::string_view::npos) return has_plus;
  double ignored = 0;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, ignored);
  return result.ptr == end && result.ec != std::errc::invalid_argument;  // 1e999 is one, too
}

}  // namespace

bool is_label_list(std::string_view text) {
  if (text.size() > 1 && text.starts_with('[') && text.ends_with(']')) return true;
  const auto between = text.find_first_of(";|");
  if (between != 0 && between < text.size() - 1) return true;
  std::size_t numbers = 0;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (part.empty()) continue;
    if (!parse_number<double>(part)) return false;
    ++numbers;
  }
  return numbers > 1;
}

LabelTexts::Numbers LabelTexts::number(const std::vector<std::string>& classes,
                                       const Where& where) const {
  Numbers result{classes, {}};
  const auto is_integer = [](const Text& text) {
    return parse_number<std::int64_t>(text.text).has_value();
  };
  const bool integers = std::ranges::all_of(texts_, is_integer);
  if (!integers && classes.empty()) {
    if (const auto number = std::ranges::find_if(texts_, is_other_number, &Text::text);
        number != texts_.end()) {
      throw InvalidArgument(
          fmt::format(
              "{}: the label '{}' is a number, but not a plain integer; labels are integers "
              "or class names",
              where(number->first_sample), number->text),
          "For regression targets, give the column of a label file a type: path,label,age:float. "
          "For class names that look like numbers, list them in a file and set `classes` to it.");
    }
    // Otherwise a typo among numbers would turn them all into names, which get other numbers.
    if (const auto number = std::ranges::find_if(texts_, is_integer); number != texts_.end()) {
      const auto name = std::ranges::find_if_not(texts_, is_integer);
      throw InvalidArgument(
          fmt::format("{}: labels mix names and numbers: '{}' is a name, but {} has {}",
                      where(name->first_sample), escape_invalid_utf8(name->text),
                      where(number->first_sample), number->text),
          "Labels must be all names or all integers. For names that look like numbers, set "
          "`classes`.");
    }
    std::set<std::string> names;
    for (const Text& text : texts_) names.insert(escape_invalid_utf8(text.text));
    result.classes.assign(names.begin(), names.end());
  }
  const ClassNumbers numbers(result.classes);
  const auto known = static_cast<std::int64_t>(result.classes.size());
  std::vector<std::int64_t> by_text;
  for (const Text& text : texts_) {
    if (!integers) {
      by_text.push_back(numbers.of(escape_invalid_utf8(text.text), where(text.first_sample)));
      continue;
    }
    by_text.push_back(*parse_number<std::int64_t>(text.text));
    if (known != 0 && (by_text.back() < 0 || by_text.back() >= known)) {
      throw InvalidArgument(fmt::format("{}: label {} is not below the number of classes, {}",
                                        where(text.first_sample), by_text.back(), known));
    }
  }
  result.labels.reserve(samples_.size());
  for (const std::uint32_t text : samples_) result.labels.push_back(by_text[text]);
  return result;
}

}  // namespace precache
