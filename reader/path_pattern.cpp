// SPDX-License-Identifier: Apache-2.0
#include "reader/path_pattern.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostNames = 1'000'000;

[[noreturn]] void refuse(const std::string& pattern, const char* reason) {
  throw InvalidArgument(fmt::format("'{}' {}", pattern, reason));
}

std::optional<std::uint64_t> number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// What stands between braces: `A..B`, as wide as A is written, or `a,b,c`.
std::vector<std::string> alternatives(const std::string& pattern, std::string_view list) {
  std::vector<std::string> all;
  if (const std::size_t dots = list.find(".."); dots != std::string_view::npos) {
    const auto first = number(list.substr(0, dots));
    const auto last = number(list.substr(dots + 2));
    if (!first || !last || *first > *last) refuse(pattern, "has braces that are no range");
    if (*last - *first >= kMostNames) refuse(pattern, "names more than a million files");
    for (std::uint64_t i = *first; i <= *last; ++i) all.push_back(fmt::format("{:0{}}", i, dots));
    return all;
  }
  if (list.find(',') == std::string_view::npos) refuse(pattern, "has braces that are no list");
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    all.emplace_back(list.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return all;
}

/// `@000012` as `{000000..000012}`, wherever digits follow the sign.
std::string without_shorthand(std::string pattern) {
  for (std::size_t at = pattern.find('@'); at != std::string::npos;
       at = pattern.find('@', at + 1)) {
    const std::size_t end =
        std::min(pattern.find_first_not_of("0123456789", at + 1), pattern.size());
    const std::string last = pattern.substr(at + 1, end - at - 1);
    if (last.empty()) continue;
    pattern.replace(at, end - at, fmt::format("{{{}..{}}}", std::string(last.size(), '0'), last));
  }
  return pattern;
}

void expand_braces(const std::string& pattern, std::vector<std::string>& names) {
  const std::size_t open = pattern.find('{');
  const std::size_t close = pattern.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos) {
    if (names.size() >= kMostNames) refuse(pattern, "names more than a million files");
    names.push_back(pattern);
    return;
  }
  if (close == std::string::npos) refuse(pattern, "has an open brace");
  const auto list = std::string_view(pattern).substr(open + 1, close - open - 1);
  for (const std::string& choice : alternatives(pattern, list)) {
    expand_braces(pattern.substr(0, open) + choice + pattern.substr(close + 1), names);
  }
}

std::vector<std::filesystem::path> matches(const std::string& pattern) {
  glob_t found{};
  const int result = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::filesystem::path> paths;
  for (std::size_t i = 0; result == 0 && i < found.gl_pathc; ++i)
    paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (result == GLOB_NOMATCH) refuse(pattern, "matches no file");
  if (result != 0) throw IoError("cannot search", pattern, EIO);
  return paths;
}

}  // namespace

std::vector<std::filesystem::path> expand_pattern(const std::filesystem::path& pattern) {
  std::error_code ignored;
  if (std::filesystem::exists(pattern, ignored)) return {pattern};
  std::vector<std::string> names;
  expand_braces(without_shorthand(pattern.string()), names);
  std::vector<std::filesystem::path> paths;
  for (const std::string& name : names) {
    if (name.find_first_of("*?[") == std::string::npos) {
      paths.emplace_back(name);
    } else {
      for (auto& path : matches(name)) paths.push_back(std::move(path));
    }
  }
  return paths;
}

}  // namespace precache
