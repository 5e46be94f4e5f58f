// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace precache {

struct CsvLabel {
  std::string path;
  std::string label;
  std::size_t line = 0;
};

/// The names of columns; if one of them is empty, it has its usual name, `path` or `label`.
struct CsvColumns {
  std::string path{};
  std::string label{};
  /// A first row of two fields that are neither name is no header.
  bool header_is_optional = false;
};

/// Reads `path,label` rows: fields may be quoted, lines may end in CR LF, a first row "path,label"
/// is a header. If a column is named, the first row is a header that has both, and other columns
/// are ignored. Throws InvalidArgument with the line where a row is malformed.
[[nodiscard]] std::vector<CsvLabel> parse_csv_labels(std::string_view text,
                                                     const std::filesystem::path& name,
                                                     const CsvColumns& columns = {});

/// Reads class names by number: from a dataset.json, or from a text file with one name a line.
/// Throws InvalidArgument if there are none or one comes twice, IoError, or CorruptData.
[[nodiscard]] std::vector<std::string> read_class_names(const std::filesystem::path& path);

}  // namespace precache
