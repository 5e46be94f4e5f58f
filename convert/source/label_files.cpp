// SPDX-License-Identifier: Apache-2.0
#include "convert/source/label_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "formats/bytes/number_text.hpp"
#include "formats/bytes/text.hpp"
#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {
namespace {

std::string_view without_byte_order_mark(std::string_view text) {
  return text.substr(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(escape_invalid_utf8(line));
  }
  return lines;
}

class CsvReader {
 public:
  /// `hint` says how rows must be.
  CsvReader(std::string_view text, const std::filesystem::path& name, std::string hint)
      : text_(without_byte_order_mark(text)), name_(name), hint_(std::move(hint)) {}

  [[nodiscard]] bool at_end() const { return text_.empty(); }
  [[nodiscard]] std::size_t line() const { return line_; }

  /// The fields of the next row; none for an empty line.
  std::vector<std::string> row() {
    std::vector<std::string> fields;
    if (take_line_end()) return fields;
    for (;;) {
      // People write a space after the comma, which would make other names of classes.
      skip_blanks();
      fields.push_back(text_.starts_with('"') ? quoted() : plain());
      if (text_.empty() || take_line_end()) return fields;
      if (text_[0] != ',') fail("there is text after a closing quote", line_);
      text_.remove_prefix(1);
    }
  }

  [[noreturn]] void fail(std::string_view reason, std::size_t line) const {
    throw InvalidArgument(fmt::format("'{}' line {}: {}", name_.string(), line, reason), hint_);
  }

  /// Where the header, which is in this line, has a column.
  [[nodiscard]] std::size_t column(const std::vector<std::string>& header,
                                   const std::string& wanted, std::size_t line) const {
    const auto found = std::ranges::find(header, wanted);
    if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
    throw InvalidArgument(
        fmt::format("'{}' line {}: there is no column '{}'", name_.string(), line, wanted),
        fmt::format("The columns are {}.", fmt::join(header, ", ")));
  }

 private:
  bool take_line_end() {
    const std::size_t bytes = text_.starts_with("\r\n") ? 2 : text_.starts_with('\n') ? 1 : 0;
    text_.remove_prefix(bytes);
    line_ += bytes != 0 ? 1 : 0;
    return bytes != 0;
  }

  void skip_blanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size()));
  }

  std::string plain() {
    const auto end = std::min(text_.find_first_of(",\n"), text_.size());
    const bool line_end = end < text_.size() && text_[end] == '\n';
    std::string_view field = text_.substr(0, end);
    if (line_end && field.ends_with('\r')) field.remove_suffix(1);
    text_.remove_prefix(field.size());
    return std::string(trimmed(field));
  }

  std::string quoted() {
    std::string field;
    text_.remove_prefix(1);
    for (;;) {
      const auto quote = text_.find('"');
      if (quote == std::string_view::npos) fail("a quote is not closed", line_);
      field += text_.substr(0, quote);
      text_.remove_prefix(quote + 1);
      if (!text_.starts_with('"')) break;
      field += '"';  // two quotes mean one
      text_.remove_prefix(1);
    }
    line_ += static_cast<std::size_t>(std::count(field.begin(), field.end(), '\n'));
    skip_blanks();
    return field;
  }

  std::string_view text_;
  std::filesystem::path name_;
  std::string hint_;
  std::size_t line_ = 1;
};

std::string row_hint(const CsvColumns& columns) {
  return fmt::format(
      "Each line must be path,{}; quote fields that contain commas or quotes. If there are more "
      "columns, {}.",
      columns.header_is_optional ? columns.label : "label",
      columns.header_is_optional
          ? fmt::format("the first line must name them: {},{}", columns.path, columns.label)
          : "the first line must name them, and `path_column` and `label_column` must be the names "
            "of the two that count");
}

/// A column with a type; none if the text does not end in one.
std::optional<CsvTarget> parse_target(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  CsvTarget target{.name = std::string(text.substr(0, colon))};
  std::string_view type = text.substr(colon + 1);
  if (const std::size_t bracket = type.find('['); bracket != std::string_view::npos) {
    if (!type.ends_with(']')) return std::nullopt;
    target.count = parse_number<std::uint32_t>(type.substr(bracket + 1, type.size() - bracket - 2));
    if (!target.count) return std::nullopt;
    type = type.substr(0, bracket);
  }
  if (type == "float") return target;
  target.kind = type == "int" ? CsvTarget::Kind::kIntegers : CsvTarget::Kind::kNames;
  const bool is_known = type == "int" || (type == "multi" && !target.count);
  return is_known ? std::optional(std::move(target)) : std::nullopt;
}

/// A row with a type in one field may be data, unless another field says that it names columns.
bool is_typed_header(const std::vector<std::string>& fields, const CsvColumns& columns) {
  const std::string path = columns.path.empty() ? "path" : columns.path;
  return std::ranges::find(fields, path) != fields.end() &&
         std::ranges::any_of(
             fields, [](const std::string& field) { return parse_target(field).has_value(); });
}

/// The places of the columns of a table in its rows.
struct Fields {
  bool is_header = false;  // the first row, which says where they are
  bool is_named = false;   // there may be further columns
  std::size_t path = 0;
  std::optional<std::size_t> label = 1;
  std::vector<std::size_t> targets{};
  std::size_t least = 2;  // fields of a row
};

Fields find_fields(const CsvReader& reader, const std::vector<std::string>& first, std::size_t line,
                   const CsvColumns& columns, std::vector<CsvTarget>& targets) {
  Fields places;
  const bool is_typed = !columns.header_is_optional && is_typed_header(first, columns);
  const auto has = [&](const std::string& wanted) {
    return std::ranges::find(first, wanted) != first.end();
  };
  const bool lacks_header =
      columns.header_is_optional && first.size() == 2 && !has(columns.path) && !has(columns.label);
  places.is_named =
      is_typed || (!lacks_header && (!columns.path.empty() || !columns.label.empty()));
  places.is_header = places.is_named || first == std::vector<std::string>{"path", "label"};
  if (!places.is_named) return places;
  places.path = reader.column(first, columns.path.empty() ? "path" : columns.path, line);
  const std::string label = columns.label.empty() ? "label" : columns.label;
  const bool may_lack_labels = is_typed && columns.label.empty();
  places.label.reset();
  if (!may_lack_labels || has(label)) places.label = reader.column(first, label, line);
  places.least = std::max(places.path, places.label.value_or(0)) + 1;
  if (!is_typed) return places;
  for (std::size_t i = 0; i < first.size(); ++i) {
    auto target = parse_target(first[i]);
    if (!target) continue;
    targets.push_back(std::move(*target));
    places.targets.push_back(i);
    places.least = i + 1 > places.least ? i + 1 : places.least;
  }
  return places;
}

}  // namespace

CsvTable parse_csv_table(std::string_view text, const std::filesystem::path& name,
                         const CsvColumns& columns) {
  CsvReader reader(text, name, row_hint(columns));
  CsvTable table;
  Fields places;
  for (bool is_first = true; !reader.at_end();) {
    const std::size_t line = reader.line();
    auto fields = reader.row();
    if (fields.empty()) continue;
    if (std::exchange(is_first, false)) {
      places = find_fields(reader, fields, line, columns, table.targets);
      if (places.is_header) continue;
    }
    if (places.is_named ? fields.size() < places.least : fields.size() != 2) {
      reader.fail(fmt::format("the line has {}", human::count(fields.size(), "field")), line);
    }
    CsvLabel& row = table.rows.emplace_back();
    row.line = line;
    row.path = std::move(fields[places.path]);
    if (places.label) row.label = std::move(fields[*places.label]);
    if (row.path.empty() || (places.label && row.label.empty())) {
      reader.fail(fmt::format("the path or the {} is empty",
                              columns.header_is_optional ? columns.label : "label"),
                  line);
    }
    for (const std::size_t field : places.targets) row.targets.push_back(std::move(fields[field]));
  }
  return table;
}

std::vector<CsvTarget> parse_csv_targets(std::string_view text, const std::filesystem::path& name,
                                         const CsvColumns& columns) {
  CsvReader reader(text, name, row_hint(columns));
  std::vector<std::string> fields;
  while (fields.empty() && !reader.at_end()) fields = reader.row();
  std::vector<CsvTarget> targets;
  if (!is_typed_header(fields, columns)) return targets;
  for (const std::string& field : fields) {
    if (auto target = parse_target(field)) targets.push_back(std::move(*target));
  }
  return targets;
}

std::vector<std::string> read_class_names(const std::filesystem::path& path) {
  auto names = path.extension() == ".json"
                   ? Manifest::read(path).classes
                   : lines_of(without_byte_order_mark(as_text(read_file(path))));
  if (names.empty()) throw InvalidArgument(fmt::format("'{}' has no class names", path.string()));
  std::unordered_set<std::string_view> seen;
  for (const auto& name : names) {
    if (seen.insert(name).second) continue;
    throw InvalidArgument(fmt::format("'{}' has the class '{}' twice", path.string(), name));
  }
  return names;
}

}  // namespace precache
