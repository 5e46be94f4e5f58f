// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/shard/limits.hpp"

/// How webdataset names the files of a sample, and what it puts into them.
namespace precache::tar {

/// A path as webdataset cuts it: at the first dot of the base name.
struct SplitName {
  std::string_view key;  // empty if the path is no file of a sample
  std::string_view extension;
};
[[nodiscard]] SplitName split_name(std::string_view path);

/// What a file next to a sample says of its label.
struct FoundLabel {
  std::string label{};  // a number or a name; empty: none
  std::string unfit{};  // if it has none: what stands in its place, as in "'label' is a list"
};

/// The whole file is the label: one line of at most kLongestLabel bytes.
[[nodiscard]] FoundLabel label_of_text(std::string_view text);

/// Its `field` is the label, or one of the usual names. Files that are no object, or larger or
/// deeper than notes need to be, say nothing.
[[nodiscard]] FoundLabel label_of_json(std::string_view text, const std::string& field = {});

/// How the extension of a file of labels is named, or a field of its JSON: `cls`, `json.species`.
struct LabelKey {
  std::string extension{};   // in lower case; empty: guessed
  std::string json_field{};  // empty: guessed
};
[[nodiscard]] LabelKey parse_label_key(const std::string& key);

/// What `.txt` files next to samples hold, over all samples whose label they are. Many tools write
/// captions there, so that not every text is the name of a class.
struct TextFiles {
  std::uint64_t files = 0;
  std::uint64_t too_long = 0;   // of several lines, or of more than kLongestLabel bytes
  std::uint64_t different = 0;  // among the others

  /// Whether they name classes: none is too long, at most 1,000 differ, and on average two samples
  /// share one.
  [[nodiscard]] bool are_class_names() const;
  /// As in "12 .txt files hold 12 different texts".
  [[nodiscard]] std::string text() const;
};

}  // namespace precache::tar
