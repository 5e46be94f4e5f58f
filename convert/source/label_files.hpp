// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace precache {

struct CsvLabel {
  std::string path;
  std::string label;  // empty in a file without a column of labels
  std::size_t line = 0;
  std::vector<std::string> targets{};  // the fields of CsvTable::targets
};

/// A column whose name in the header is followed by a type: `age:float`, `box:int[4]`,
/// `tags:multi`.
struct CsvTarget {
  enum class Kind {
    kFloats,
    kIntegers,
    kNames  // any number of names of classes
  };
  std::string name;
  Kind kind = Kind::kFloats;
  /// Of the values in a field, with spaces between; none: one value.
  std::optional<std::uint32_t> count{};
};

struct CsvTable {
  std::vector<CsvTarget> targets;
  std::vector<CsvLabel> rows;
};

/// The names of columns; if one of them is empty, it has its usual name, `path` or `label`.
struct CsvColumns {
  std::string path{};
  std::string label{};
  /// A first row of two fields that are not these names is a sample, not a header.
  bool header_is_optional = false;
};

/// Reads `path,label` rows: fields may be quoted, spaces and tabs around a field do not count,
/// lines may end in CR LF, a first row "path,label" is a header. If a column is named by `columns`
/// or the first row has columns with types, that row is a header, and its columns without a type
/// are ignored, except for path and label. With types, a column of labels may be missing. Throws
/// InvalidArgument with the line where a row is malformed.
[[nodiscard]] CsvTable parse_csv_table(std::string_view text, const std::filesystem::path& name,
                                       const CsvColumns& columns = {});

/// The columns with types that the first row has.
[[nodiscard]] std::vector<CsvTarget> parse_csv_targets(std::string_view text,
                                                       const std::filesystem::path& name,
                                                       const CsvColumns& columns = {});

/// Reads class names by number: from a dataset.json, or from a text file with one name a line.
/// Throws InvalidArgument if there are none or one comes twice, IoError, or CorruptData.
[[nodiscard]] std::vector<std::string> read_class_names(const std::filesystem::path& path);

}  // namespace precache
