// SPDX-License-Identifier: Apache-2.0
#include "convert/source/source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>
#include <unordered_map>

#include "convert/source/csv_labels.hpp"
#include "convert/source/folder_walk.hpp"
#include "convert/source/utf8.hpp"
#include "formats/base/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

/// Numbers of class names.
class ClassNumbers {
 public:
  explicit ClassNumbers(const std::vector<std::string>& classes) {
    for (std::size_t i = 0; i < classes.size(); ++i)
      numbers_.emplace(classes[i], static_cast<std::int64_t>(i));
  }
  [[nodiscard]] std::int64_t of(const std::string& name, const std::string& where) const {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    throw InvalidArgument(
        fmt::format("unknown class '{}' ({})", name, where),
        "It is not among the class names that --classes or the dataset in OUT fixes.");
  }

 private:
  std::unordered_map<std::string, std::int64_t> numbers_;
};

Source label_by_folder(FolderWalk walk, const fs::path& root,
                       const std::vector<std::string>& fixed_classes) {
  Source source{std::move(walk.images), fixed_classes, std::move(walk.left_out)};
  if (source.classes.empty()) {
    for (const auto& folder : walk.top_folders) {
      source.classes.push_back(escape_invalid_utf8(folder));
    }
    const std::set<std::string> distinct(source.classes.begin(), source.classes.end());
    if (distinct.size() != source.classes.size()) {
      throw InvalidArgument(
          fmt::format("two folders in '{}' have names that cannot be told apart in UTF-8",
                      root.string()),
          "Rename the one whose name is not valid UTF-8.");
    }
  }
  const ClassNumbers numbers(source.classes);
  std::string_view folder;
  std::int64_t number = -1;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    const std::string_view path = source.listing[i].path;
    const auto slash = path.find('/');
    if (slash == std::string_view::npos) {
      throw InvalidArgument(
          fmt::format("'{}' lies directly in SOURCE, so it has no class", (root / path).string()),
          "Put images into one folder per class, or use --labels none, or --labels FILE.csv.");
    }
    if (path.substr(0, slash) != folder) {
      folder = path.substr(0, slash);
      number = numbers.of(escape_invalid_utf8(folder),
                          fmt::format("folder '{}'", (root / folder).string()));
    }
    source.listing.set_label(i, number);
  }
  return source;
}

std::optional<std::int64_t> as_integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

ListedFile stat_listed(const fs::path& root, const std::string& path, const std::string& where) {
  struct stat status {};
  const auto full = root / path;
  if (::stat(full.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      throw InvalidArgument(fmt::format("{}: there is no '{}'", where, full.string()),
                            "Paths are taken below SOURCE.");
    }
    throw IoError("cannot read", full, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw InvalidArgument(fmt::format("{}: '{}' is not a regular file", where, full.string()));
  }
  return {path, static_cast<std::uint64_t>(status.st_size), mtime_ns(status), -1};
}

Source label_by_csv(const fs::path& root, const Labelling& labelling) {
  const auto rows = parse_csv_labels(as_text(read_file(labelling.csv)), labelling.csv);
  const auto where = [&](const CsvLabel& row) {
    return fmt::format("'{}' line {}", labelling.csv.string(), row.line);
  };
  Source source;
  source.classes = labelling.classes;
  const auto is_integer = [](const CsvLabel& row) { return as_integer(row.label).has_value(); };
  const bool integers = std::ranges::all_of(rows, is_integer);
  if (!integers && source.classes.empty()) {
    // A slip of the pen among numbers would else make names of them all, with other numbers.
    if (const auto number = std::ranges::find_if(rows, is_integer); number != rows.end()) {
      const auto name = std::ranges::find_if_not(rows, is_integer);
      throw InvalidArgument(fmt::format("{}: '{}' is a name, but line {} has the number {}",
                                        where(*name), name->label, number->line, number->label),
                            "Labels are all names or all integers. Names that look like numbers "
                            "need --classes.");
    }
    std::set<std::string> names;
    for (const auto& row : rows) names.insert(escape_invalid_utf8(row.label));
    source.classes.assign(names.begin(), names.end());
  }
  const ClassNumbers numbers(source.classes);
  std::unordered_map<std::string, std::size_t> lines;
  for (const auto& row : rows) {
    const std::string path = fs::path(row.path).lexically_normal().string();
    if (fs::path(path).is_absolute() || *fs::path(path).begin() == "..") {
      throw InvalidArgument(fmt::format("{}: '{}' is not below SOURCE", where(row), row.path));
    }
    if (const auto [first, is_new] = lines.emplace(path, row.line); !is_new) {
      throw InvalidArgument(fmt::format("{}: '{}' was already named in line {}", where(row),
                                        row.path, first->second));
    }
    ListedFile file = stat_listed(root, path, where(row));
    if (!integers) {
      file.label = numbers.of(escape_invalid_utf8(row.label), where(row));
    } else {
      file.label = *as_integer(row.label);
      const auto known = static_cast<std::int64_t>(source.classes.size());
      if (known != 0 && (file.label < 0 || file.label >= known)) {
        throw InvalidArgument(
            fmt::format("{}: label {} is not below the {} classes", where(row), file.label, known));
      }
    }
    source.listing.add(file);
  }
  source.listing.sort_by_path();
  return source;
}

}  // namespace

Source open_source(const fs::path& root, const Labelling& labelling) {
  Source source;
  if (labelling.kind == Labelling::Kind::kCsv) {
    source = label_by_csv(root, labelling);
  } else {
    FolderWalk walk = walk_folder(root);
    walk.images.sort_by_path();
    if (labelling.kind == Labelling::Kind::kFolder) {
      source = label_by_folder(std::move(walk), root, labelling.classes);
    } else {
      source = {std::move(walk.images), labelling.classes, std::move(walk.left_out)};
    }
  }
  if (source.listing.size() == 0) {
    throw InvalidArgument(fmt::format("there are no images in '{}'", root.string()),
                          "JPEG and PNG files are looked for, in all folders below it.");
  }
  return source;
}

}  // namespace precache
