// SPDX-License-Identifier: Apache-2.0
#include "cli/option_values.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "formats/bytes/text.hpp"
#include "precache/formats/error.hpp"

namespace precache::option_values {
namespace {

std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) {
  const auto at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

// Parsed as double first, as in Python: rounding a decimal directly to float may differ.
std::optional<std::array<float, 3>> channel_values(std::string_view text, std::size_t channels) {
  std::array<float, 3> values{};
  std::size_t count = 0;
  for (bool more = true; more; ++count) {
    const auto [first, rest] = split(text, ',');
    const auto value = parse_number<double>(first);
    if (!value || !std::isfinite(*value) || count == channels) return std::nullopt;
    values[count] = static_cast<float>(*value);
    more = text.find(',') != std::string_view::npos;
    text = rest;
  }
  if (count == 1) values.fill(values[0]);
  if (count != 1 && count != channels) return std::nullopt;
  return values;
}

}  // namespace

std::uint64_t integer(const std::string& option, const std::string& text, std::uint64_t low,
                      std::uint64_t high) {
  const auto value = parse_number<std::uint64_t>(text);
  if (value && *value >= low && *value <= high) return *value;
  throw InvalidArgument(
      fmt::format("{} must be a whole number from {} to {}, got '{}'", option, low, high, text));
}

double decimal(const std::string& option, const std::string& text, double low, double high) {
  const auto value = parse_number<double>(text);
  if (value && *value >= low && *value <= high) return *value;
  throw InvalidArgument(
      fmt::format("{} must be a number from {:g} to {:g}, got '{}'", option, low, high, text));
}

std::string not_empty(const std::string& option, const std::string& text) {
  if (text.empty()) throw InvalidArgument(option + " must not be empty");
  return text;
}

std::pair<std::uint32_t, std::uint32_t> size(const std::string& text) {
  const auto [first, second] = split(text, 'x');
  const auto height = parse_number<std::uint32_t>(first);
  const auto width =
      text.find('x') == std::string::npos ? height : parse_number<std::uint32_t>(second);
  if (!height || !width || *height == 0 || *width == 0) {
    throw InvalidArgument(
        fmt::format("`size` must be one or two numbers of at least 1, got '{}'", text),
        "Give N for a square, or HEIGHTxWIDTH.");
  }
  return {*height, *width};
}

std::uint64_t bytes(const std::string& text, const std::string& option) {
  const auto digits = text.find_first_not_of("0123456789");
  const auto value = parse_number<std::uint64_t>(std::string_view(text).substr(0, digits));
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  constexpr std::string_view kPrefixes = "KMGTP";
  std::size_t power = 0;
  std::uint64_t step = 1;
  if (!unit.empty() && unit != "B") {
    power = kPrefixes.find(unit[0] == 'k' ? 'K' : unit[0]) + 1;  // npos + 1 is 0
    const std::string rest = unit.substr(1);
    if (rest.empty() || rest == "iB") step = 1024;
    if (rest == "B") step = 1000;
  }
  std::uint64_t result = value.value_or(0);
  if (!unit.empty() && unit != "B" && (power == 0 || step == 1)) result = 0;
  for (std::size_t i = 0; i < power; ++i) {
    if (__builtin_mul_overflow(result, step, &result)) result = 0;
  }
  if (result == 0) {
    throw InvalidArgument(fmt::format("{} must be a number of bytes, got '{}'", option, text),
                          "For example 512MiB, 2G or 1GB.");
  }
  return result;
}

double percent(const std::string& text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  const auto value = parse_number<double>(digits);
  if (!value || !(*value >= 0 && *value <= 100)) {
    throw InvalidArgument(
        fmt::format("`max_bad` must be a percentage from 0 to 100, got '{}'", text),
        "For example 1% or 0.05%.");
  }
  return *value;
}

Share part(const std::string& text, const char* field) {
  const auto [first, second] = split(text, '/');
  const auto index = parse_number<std::uint64_t>(first);
  const auto count = parse_number<std::uint64_t>(second);
  if (!index || !count || *index >= *count) {
    throw InvalidArgument(
        fmt::format("`{}` must be I/N with I from 0 to N-1, got '{}'", field, text),
        "Parts 0/N to (N-1)/N together make the dataset.");
  }
  return {*index, *count};
}

Normalization normalization(const std::string& text, Color color) {
  if (text == "imagenet") {
    if (color == Color::kGray) {
      throw InvalidArgument("`normalize` imagenet has three channels, but `color` gray has one",
                            "Give MEAN/STD, such as 0.449/0.226.");
    }
    return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  }
  const std::size_t channels = color == Color::kRgb ? 3 : 1;
  const auto [mean_text, std_text] = split(text, '/');
  const auto mean = channel_values(mean_text, channels);
  const auto std = channel_values(std_text, channels);
  if (!mean || !std) {
    throw InvalidArgument(fmt::format("`normalize` must be imagenet or MEAN/STD, got '{}'", text),
                          "For example 0.5/0.5 or 0.485,0.456,0.406/0.229,0.224,0.225.");
  }
  return {*mean, *std};
}

}  // namespace precache::option_values
