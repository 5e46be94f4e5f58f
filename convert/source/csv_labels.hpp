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

/// Reads `path,label` rows: fields may be quoted, lines may end in CR LF, a first row "path,label"
/// is a header. Throws InvalidArgument naming the line where a row is malformed.
[[nodiscard]] std::vector<CsvLabel> parse_csv_labels(std::string_view text,
                                                     const std::filesystem::path& name);

}  // namespace precache
