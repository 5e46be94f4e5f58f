// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace precache::tar {

/// A path as webdataset cuts it; no key if webdataset drops it.
struct SampleName {
  std::string_view key;
  std::string_view extension;
};

[[nodiscard]] inline SampleName split_name(std::string_view path) {
  const std::string_view top = path.substr(0, path.find('/'));
  if (top.size() >= 4 && top.starts_with("__") && top.ends_with("__")) return {};
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base) return {};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace precache::tar
