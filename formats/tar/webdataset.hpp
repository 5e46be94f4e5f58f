// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

/// How webdataset names the files of a sample, and what it puts into them.
namespace precache::tar {

/// A path as webdataset cuts it: at the first dot of the base name.
struct SplitName {
  std::string_view key;  // empty if webdataset drops the path
  std::string_view extension;
};
[[nodiscard]] SplitName split_name(std::string_view path);

/// Without white space around it.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Null if it is no object, or larger or deeper than the notes of a sample need to be.
[[nodiscard]] nlohmann::json parse_small_object(std::string_view text);

}  // namespace precache::tar
