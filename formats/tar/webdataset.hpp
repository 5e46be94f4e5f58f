// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
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

/// A text beyond is a caption, no class.
inline constexpr std::size_t kLongestLabel = 256;

/// The label, a number or a name, in the notes of a sample; in `field`, if that is given. None if
/// they are no object, or larger or deeper than notes need to be.
[[nodiscard]] std::optional<std::string> label_of_json(std::string_view text,
                                                       const std::string& field = {});

}  // namespace precache::tar
