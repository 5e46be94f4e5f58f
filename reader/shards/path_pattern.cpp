// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/path_pattern.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "formats/bytes/text.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostNames = 1'000'000;
constexpr const char* kTooMany = "names more than a million files";

[[noreturn]] void refuse(const std::string& pattern, const char* reason) {
  throw InvalidArgument(fmt::format("'{}' {}", pattern, reason), "For example 'x-{000..127}.tar'.");
}

/// The alternatives of a brace list: `A..B`, padded to the width of A, or `a,b,c`.
std::vector<std::string> alternatives(const std::string& pattern, std::string_view list) {
  if (list.find('{') != std::string_view::npos) refuse(pattern, "has braces within braces");
  std::vector<std::string> all;
  if (const std::size_t dots = list.find(".."); dots != std::string_view::npos) {
    const auto first = parse_number<std::uint64_t>(list.substr(0, dots));
    const auto last = parse_number<std::uint64_t>(list.substr(dots + 2));
    if (!first || !last || *first > *last) {
      refuse(pattern, "has braces that do not contain a range of numbers");
    }
    if (*last - *first >= kMostNames) refuse(pattern, kTooMany);
    for (std::uint64_t i = 0; i <= *last - *first; ++i) {
      all.push_back(fmt::format("{:0{}}", *first + i, dots));
    }
    return all;
  }
  if (list.find(',') == std::string_view::npos) {
    refuse(pattern, "has braces that do not contain a list");
  }
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    all.emplace_back(list.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return all;
}

/// Replaces `@000012` in the file name by `{000000..000012}`.
std::string without_shorthand(std::string pattern) {
  // Only in the file name: a folder may be called run@2024.
  const std::size_t name = pattern.rfind('/') + 1;  // npos + 1 is 0
  for (std::size_t at = pattern.find('@', name); at != std::string::npos;
       at = pattern.find('@', at + 1)) {
    const std::size_t end =
        std::min(pattern.find_first_not_of("0123456789", at + 1), pattern.size());
    const std::string last = pattern.substr(at + 1, end - at - 1);
    if (last.empty()) continue;
    pattern.replace(at, end - at, fmt::format("{{{}..{}}}", std::string(last.size(), '0'), last));
  }
  return pattern;
}

/// `text` is `pattern` without shorthand.
std::vector<std::string> expand_braces(const std::string& text, const std::string& pattern) {
  std::vector<std::string> names{""};
  for (std::size_t begin = 0;;) {
    const std::size_t open = text.find('{', begin);
    for (std::string& name : names) name += text.substr(begin, open - begin);
    if (open == std::string::npos) return names;
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos) refuse(pattern, "has a brace that is not closed");
    const auto list = std::string_view(text).substr(open + 1, close - open - 1);
    const std::vector<std::string> choices = alternatives(pattern, list);
    if (choices.size() > kMostNames / names.size()) refuse(pattern, kTooMany);
    std::vector<std::string> longer;
    longer.reserve(names.size() * choices.size());
    for (const std::string& name : names) {
      for (const std::string& choice : choices) longer.push_back(name + choice);
    }
    names = std::move(longer);
    begin = close + 1;
  }
}

std::vector<std::filesystem::path> matches(const std::string& pattern) {
  // A missing folder has no matches; other errors end the search. thread_local, because glob()
  // passes no argument to the callback.
  static thread_local int search_error;
  search_error = 0;
  const auto on_error = [](const char*, int error) {
    if (error == ENOENT || error == ENOTDIR) return 0;
    search_error = error;
    return 1;
  };
  glob_t found{};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, on_error, &found);
  std::vector<std::string> names;
  for (std::size_t i = 0; result == 0 && i < found.gl_pathc; ++i)
    names.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (result == GLOB_NOMATCH) refuse(pattern, "matches no file");
  if (result != 0) {
    throw IoError("cannot search", pattern, result == GLOB_NOSPACE ? ENOMEM : search_error);
  }
  std::sort(names.begin(), names.end());  // glob() would sort by the user's locale
  return {names.begin(), names.end()};
}

}  // namespace

std::vector<std::filesystem::path> expand_pattern(const std::filesystem::path& pattern) {
  std::error_code ignored;
  if (std::filesystem::exists(pattern, ignored)) return {pattern};
  std::vector<std::filesystem::path> paths;
  for (const std::string& name :
       expand_braces(without_shorthand(pattern.string()), pattern.string())) {
    if (name.find_first_of("*?[") == std::string::npos) {
      paths.emplace_back(name);
    } else {
      for (auto& path : matches(name)) paths.push_back(std::move(path));
    }
  }
  return paths;
}

}  // namespace precache
