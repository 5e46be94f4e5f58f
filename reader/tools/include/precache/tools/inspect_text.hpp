// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "precache/tools/inspect.hpp"

// Facts in words, for terminals and pages. What comes from files is made harmless: UTF-8, without
// control characters.
namespace precache {

/// As in "precache dataset, tar" or "HDF5 file".
[[nodiscard]] std::string headline(const Inspection& facts);

struct FactRow {
  std::string title;
  std::string text;
};

/// What a person wants to know first, in the order of importance.
[[nodiscard]] std::vector<FactRow> fact_rows(const Inspection& facts);

struct FactTable {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::size_t left_columns = 1;  // which are words; the others are numbers
  std::string note;              // what was left out
};

/// What takes more than a line, each with `most_rows` rows at most.
[[nodiscard]] std::vector<FactTable> fact_tables(const Inspection& facts, std::size_t most_rows);

/// "7", "3 to 1,200", or "-" for a range of no numbers.
[[nodiscard]] std::string count_range(const ValueRange& range);

/// Cut at its end to `columns` letters, "..." being the last of them.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

}  // namespace precache
