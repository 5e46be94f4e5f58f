// SPDX-License-Identifier: Apache-2.0
#include "convert/source/csv_targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <unordered_map>

#include "convert/source/label_files.hpp"
#include "formats/bytes/text.hpp"
#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// The parts of a field between separators, without the spaces around them.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    const std::string_view part = trimmed(text.substr(begin, end - begin));
    if (!part.empty()) parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

constexpr std::string_view kSpaces = " \t";
constexpr std::string_view kSemicolon = ";";

bool are_integers(const std::set<std::string>& names) {
  return std::ranges::all_of(
      names, [](const auto& name) { return parse_number<std::int64_t>(name).has_value(); });
}

/// The names in their order: by number if all are integers.
std::vector<std::string> sorted(const std::set<std::string>& names) {
  std::vector<std::string> list(names.begin(), names.end());
  if (are_integers(names)) {
    std::ranges::stable_sort(
        list, {}, [](const std::string& name) { return *parse_number<std::int64_t>(name); });
  }
  return list;
}

/// One column of a table and its values.
class Target {
 public:
  Target(const std::filesystem::path& csv, const CsvTable& table, std::size_t number,
         const std::vector<NamedColumn>& known)
      : csv_(csv), target_(table.targets[number]), number_(number) {
    column_.name = target_.name;
    column_.type = target_.kind == CsvTarget::Kind::kFloats     ? ValueType::kFloat32
                   : target_.kind == CsvTarget::Kind::kIntegers ? ValueType::kInt64
                                                                : ValueType::kUint8;
    if (target_.count) column_.shape = {*target_.count};
    if (target_.kind == CsvTarget::Kind::kNames) find_names(table, known);
    column_.validate();
    if (column_.name == kMaskColumn || column_.name == kSizeColumn) {
      throw InvalidArgument(
          fmt::format("'{}': a column cannot be named '{}'", csv.string(), column_.name),
          "precache makes columns of that name itself.");
    }
  }

  [[nodiscard]] const NamedColumn& column() const { return column_; }

  /// Writes the values of a row to `to`, which is zero.
  void write(const CsvLabel& row, std::span<std::byte> to) const {
    const std::string& text = row.targets[number_];
    if (target_.kind == CsvTarget::Kind::kNames) {
      for (const std::string_view name : parts_of(text, between_names_)) {
        const auto found = numbers_.find(escape_invalid_utf8(name));
        if (found == numbers_.end()) {
          fail(row, fmt::format("'{}' is not one of the {} names that other splits have", name,
                                numbers_.size()));
        }
        to[found->second] = std::byte{1};
      }
      return;
    }
    const auto parts = parts_of(text, kSpaces);
    if (parts.size() != column_.count()) {
      fail(row, fmt::format("'{}' has {} values, not {}", text, parts.size(), column_.count()));
    }
    for (const std::string_view part : parts) {
      to = target_.kind == CsvTarget::Kind::kFloats ? put(to, float_of(row, part))
                                                    : put(to, integer_of(row, part));
    }
  }

 private:
  [[noreturn]] void fail(const CsvLabel& row, const std::string& reason) const {
    throw InvalidArgument(
        fmt::format("'{}' line {}: column '{}': {}", csv_.string(), row.line, target_.name, reason),
        "Correct the field, or remove the row.");
  }

  template <typename T>
  static std::span<std::byte> put(std::span<std::byte> to, T value) {
    std::memcpy(to.data(), &value, sizeof value);
    return to.subspan(sizeof value);
  }

  [[nodiscard]] float float_of(const CsvLabel& row, std::string_view text) const {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
      fail(row, fmt::format("'{}' is not a number", text));
    }
    if (error == std::errc{} && !std::isfinite(number)) {
      fail(row, fmt::format("'{}' is not a finite number", text));
    }
    const auto value = static_cast<float>(number);
    if (error != std::errc{} || !std::isfinite(value)) {
      fail(row, fmt::format("'{}' does not fit a float32", text));
    }
    return value;
  }

  [[nodiscard]] std::int64_t integer_of(const CsvLabel& row, std::string_view text) const {
    const auto value = parse_number<std::int64_t>(text);
    if (!value) fail(row, fmt::format("'{}' is not an integer of 64 bits", text));
    return *value;
  }

  void find_names(const CsvTable& table, const std::vector<NamedColumn>& known) {
    const auto same = std::ranges::find(known, target_.name, &NamedColumn::name);
    const auto has_names_of_words = [](const std::string& name) {
      return name.find_first_of(kSpaces) != std::string::npos;
    };
    const bool has_semicolons =
        std::ranges::any_of(table.rows,
                            [&](const CsvLabel& row) {
                              return row.targets[number_].find(kSemicolon) != std::string::npos;
                            }) ||
        (same != known.end() && std::ranges::any_of(same->value_names, has_names_of_words));
    between_names_ = has_semicolons ? kSemicolon : kSpaces;
    if (same != known.end()) {
      column_.value_names = same->value_names;
    } else {
      std::set<std::string> names;
      for (const CsvLabel& row : table.rows) {
        for (const std::string_view name : parts_of(row.targets[number_], between_names_)) {
          names.insert(escape_invalid_utf8(name));
        }
        if (names.size() <= kMostValues) continue;
        fail(row, fmt::format("there are more than {} names", kMostValues));
      }
      column_.value_names = sorted(names);
    }
    if (column_.value_names.empty()) {
      throw InvalidArgument(
          fmt::format("'{}': no row has a name in column '{}'", csv_.string(), target_.name));
    }
    column_.shape = {static_cast<std::uint32_t>(column_.value_names.size())};
    for (std::size_t i = 0; i < column_.value_names.size(); ++i) {
      numbers_.emplace(column_.value_names[i], i);
    }
  }

  const std::filesystem::path& csv_;
  const CsvTarget& target_;
  std::size_t number_;
  NamedColumn column_;
  std::string_view between_names_ = kSpaces;              // in a field
  std::unordered_map<std::string, std::size_t> numbers_;  // of names
};

}  // namespace

std::vector<std::string> csv_target_names(const Labelling& labelling) {
  std::vector<std::string> names;
  if (labelling.kind != Labelling::Kind::kCsv) return names;
  const auto bytes = read_file(labelling.csv);
  for (CsvTarget& target : parse_csv_targets(as_text(bytes), labelling.csv,
                                             {labelling.path_column, labelling.label_column})) {
    names.push_back(std::move(target.name));
  }
  return names;
}

void add_csv_targets(Source& source, const Labelling& labelling, const std::filesystem::path& root,
                     const std::vector<NamedColumn>& known) {
  if (csv_target_names(labelling).empty()) return;
  const CsvTable table = read_csv_table(labelling, root);
  std::vector<Target> makers;
  std::vector<NamedColumn> columns;
  for (std::size_t i = 0; i < table.targets.size(); ++i) {
    makers.emplace_back(labelling.csv, table, i, known);
    columns.push_back(makers.back().column());
  }
  validate(columns);
  std::unordered_map<std::string_view, const CsvLabel*> rows;
  for (const CsvLabel& row : table.rows) rows.emplace(row.path, &row);
  std::vector<std::byte> values(values_bytes(columns));
  Listing listing;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    ListedFile file = source.listing[i];
    const auto row = rows.find(file.path);
    if (row == rows.end()) {  // the file has changed since the source was listed
      throw InvalidArgument(
          fmt::format("'{}' has no row for '{}'", labelling.csv.string(), file.path));
    }
    std::ranges::fill(values, std::byte{});
    std::span<std::byte> to = values;
    for (const Target& maker : makers) {
      maker.write(*row->second, to.first(maker.column().size_bytes()));
      to = to.subspan(maker.column().size_bytes());
    }
    file.targets = as_text(values);
    listing.add(file);
  }
  source.listing = std::move(listing);
  source.targets = std::move(columns);
}

}  // namespace precache
