// SPDX-License-Identifier: Apache-2.0
#include "convert/source/class_names.hpp"

#include <fmt/format.h>

#include <unordered_set>

#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(escape_invalid_utf8(line));
  }
  return lines;
}

}  // namespace

std::vector<std::string> read_class_names(const std::filesystem::path& path) {
  const auto names = path.extension() == ".json" ? Manifest::read(path).classes
                                                 : lines_of(as_text(read_file(path)));
  if (names.empty()) throw InvalidArgument(fmt::format("'{}' has no class names", path.string()));
  std::unordered_set<std::string> seen;
  for (const auto& name : names) {
    if (!seen.insert(name).second) {
      throw InvalidArgument(fmt::format("'{}' has the class '{}' twice", path.string(), name));
    }
  }
  return names;
}

}  // namespace precache
