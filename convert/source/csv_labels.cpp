// SPDX-License-Identifier: Apache-2.0
#include "convert/source/csv_labels.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::filesystem::path& name) : text_(text), name_(name) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }

  [[nodiscard]] bool at_end() const { return text_.empty(); }
  [[nodiscard]] std::size_t line() const { return line_; }

  /// The fields of the next row; none for an empty line.
  std::vector<std::string> row() {
    std::vector<std::string> fields;
    if (take_line_end()) return fields;
    for (;;) {
      fields.push_back(text_.starts_with('"') ? quoted() : plain());
      if (text_.empty() || take_line_end()) return fields;
      if (text_[0] != ',') fail("text after a closing quote");
      text_.remove_prefix(1);
    }
  }

  [[noreturn]] void fail(std::string_view reason) const {
    throw InvalidArgument(fmt::format("'{}' line {}: {}", name_.string(), line_, reason),
                          "Each line is path,label; quote fields that hold commas or quotes.");
  }

 private:
  bool take_line_end() {
    const std::size_t bytes = text_.starts_with("\r\n") ? 2 : text_.starts_with('\n') ? 1 : 0;
    text_.remove_prefix(bytes);
    line_ += bytes != 0 ? 1 : 0;
    return bytes != 0;
  }

  std::string plain() {
    const auto end = std::min(text_.find_first_of(",\n"), text_.size());
    const bool line_end = end < text_.size() && text_[end] == '\n';
    std::string_view field = text_.substr(0, end);
    if (line_end && field.ends_with('\r')) field.remove_suffix(1);
    text_.remove_prefix(field.size());
    return std::string(field);
  }

  std::string quoted() {
    std::string field;
    text_.remove_prefix(1);
    for (;;) {
      const auto quote = text_.find('"');
      if (quote == std::string_view::npos) fail("a quote is not closed");
      field += text_.substr(0, quote);
      text_.remove_prefix(quote + 1);
      if (!text_.starts_with('"')) break;
      field += '"';  // two quotes stand for one
      text_.remove_prefix(1);
    }
    line_ += static_cast<std::size_t>(std::count(field.begin(), field.end(), '\n'));
    return field;
  }

  std::string_view text_;
  std::filesystem::path name_;
  std::size_t line_ = 1;
};

}  // namespace

std::vector<CsvLabel> parse_csv_labels(std::string_view text, const std::filesystem::path& name) {
  CsvReader reader(text, name);
  std::vector<CsvLabel> labels;
  bool first = true;
  while (!reader.at_end()) {
    const std::size_t line = reader.line();
    auto fields = reader.row();
    if (fields.empty()) continue;
    const bool header = first && fields.size() == 2 && fields[0] == "path" && fields[1] == "label";
    first = false;
    if (header) continue;
    if (fields.size() != 2) {
      throw InvalidArgument(
          fmt::format("'{}' line {}: {} fields, not two", name.string(), line, fields.size()),
          "Each line is path,label; quote fields that hold commas or quotes.");
    }
    if (fields[0].empty() || fields[1].empty()) {
      throw InvalidArgument(fmt::format("'{}' line {}: an empty field", name.string(), line));
    }
    labels.push_back({std::move(fields[0]), std::move(fields[1]), line});
  }
  return labels;
}

}  // namespace precache
