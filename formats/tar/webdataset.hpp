// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// The conventions of webdataset for the names and contents of the files of a sample.
namespace precache::tar {

/// A path, split as webdataset does: at the first dot of the base name.
struct SplitName {
  std::string_view key;  // empty if the path is not a file of a sample
  std::string_view extension;
};
[[nodiscard]] SplitName split_name(std::string_view path);

/// The label in a file next to a sample.
struct FoundLabel {
  std::string label{};  // a number or a name; empty: none
  std::string unfit{};  // if there is no label: what was found instead, as in "a list of 3"
};

/// Reads a file that is a label: one line of at most kLongestLabel bytes.
[[nodiscard]] FoundLabel label_of_text(std::string_view text);

/// Reads the label from `field` or, if that is empty, from a field of a usual name. Ignores files
/// that are not JSON objects, or larger or deeper than needed for labels.
[[nodiscard]] FoundLabel label_of_json(std::string_view text, const std::string& field = {});

/// Where labels are: the extension of a file (`cls`), or a field of its JSON (`json.species`).
struct LabelKey {
  std::string extension{};   // in lower case; empty: guessed
  std::string json_field{};  // empty: guessed
};
[[nodiscard]] LabelKey parse_label_key(const std::string& key);

/// Counts of the `.txt` files that hold the labels of samples. Many tools write captions to such
/// files, so not every text is the name of a class.
struct TextFiles {
  std::uint64_t files = 0;
  std::uint64_t too_long = 0;   // of several lines, or of more than kLongestLabel bytes
  std::uint64_t different = 0;  // among the short ones

  /// Whether they name classes: none is too long, at most 1,000 differ, and on average two samples
  /// share one.
  [[nodiscard]] bool are_class_names() const;
  /// As in "12 .txt files hold 12 different texts".
  [[nodiscard]] std::string text() const;
};

}  // namespace precache::tar
