// SPDX-License-Identifier: Apache-2.0
#include "convert/source/source.hpp"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <regex>
#include <set>
#include <unordered_map>

#include "convert/source/folder_walk.hpp"
#include "convert/source/found.hpp"
#include "convert/source/label_files.hpp"
#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_names.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

std::string place(const fs::path& csv, const CsvLabel& row) {
  return fmt::format("'{}' line {}", csv.string(), row.line);
}

ListedFile stat_listed(const fs::path& root, const std::string& path, const std::string& where) {
  struct stat status {};
  const auto full = root / path;
  if (::stat(full.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      throw InvalidArgument(fmt::format("{}: there is no '{}'", where, full.string()),
                            "Paths are relative to `source`. If the first line is a header, name "
                            "its columns with `path_column` and `label_column`.");
    }
    throw IoError("cannot read", full, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw InvalidArgument(fmt::format("{}: '{}' is not a regular file", where, full.string()));
  }
  return {path, static_cast<std::uint64_t>(status.st_size), mtime_ns(status), -1};
}

/// A path of a CSV file as it is below the root, which an absolute path may name; starts with ".."
/// if it is elsewhere.
fs::path below_root(const std::string& text, const fs::path& root) {
  fs::path path = fs::path(text).lexically_normal();
  if (!path.is_absolute()) return path;
  fs::path below = path.lexically_relative(fs::absolute(root).lexically_normal());
  if (*below.begin() != "..") return below;
  return path.lexically_relative(fs::weakly_canonical(root));
}

/// The rows of a CSV file with their paths in one form, below the root and each once.
CsvTable read_table(const fs::path& csv, const CsvColumns& columns, const fs::path& root) {
  const auto bytes = read_file(csv);
  CsvTable table = parse_csv_table(as_text(bytes), csv, columns);
  auto& rows = table.rows;
  std::unordered_map<std::string, std::size_t> lines;
  for (CsvLabel& row : rows) {
    const fs::path path = below_root(row.path, root);
    if (path.empty() || *path.begin() == "..") {
      throw InvalidArgument(
          fmt::format("{}: '{}' is not below `source`", place(csv, row), row.path));
    }
    if (const auto [first, is_new] = lines.emplace(path.string(), row.line); !is_new) {
      throw InvalidArgument(
          fmt::format("{}: '{}' is already in line {}", place(csv, row), row.path, first->second));
    }
    row.path = path.string();
  }
  return table;
}

[[noreturn]] void refuse_list(const fs::path& csv, const CsvLabel& row) {
  throw InvalidArgument(
      fmt::format("{}: the label '{}' looks like a list; a label is one integer or one class name",
                  place(csv, row), row.label),
      "For several labels of an image, give the column a type: path,label,tags:multi. For class "
      "names with such characters, list them in a file and set `classes` to it.");
}

using Find = std::function<ListedFile(const CsvLabel& row, const std::string& where)>;

void list_rows(Source& source, const fs::path& root, const Labelling& labelling, const Find& find) {
  const auto rows = read_csv_table(labelling, root).rows;
  Listing listing;
  LabelTexts texts;
  for (const CsvLabel& row : rows) {
    listing.add(find(row, place(labelling.csv, row)));
    if (labelling.classes.empty() && is_label_list(row.label)) refuse_list(labelling.csv, row);
    texts.add(row.label);
  }
  source.listing = std::move(listing);
  if (!rows.empty() && rows.front().label.empty()) {  // there is no column of labels
    source.classes = labelling.classes;
  } else {
    label_by_texts(source, texts, labelling.classes,
                   [&](std::size_t i) { return place(labelling.csv, rows[i]); });
  }
  source.listing.sort_by_path();
}

void label_by_regex(Source& source, const fs::path& root, const Labelling& labelling) {
  std::regex pattern;
  try {
    pattern.assign(labelling.regex);
  } catch (const std::regex_error& error) {
    throw InvalidArgument(fmt::format("`label_regex` '{}' is not a regular expression: {}",
                                      labelling.regex, error.what()));
  }
  constexpr const char* kHint = "For example, '([a-z]+)_[0-9]+' finds cat in photos/cat_12.jpg.";
  if (pattern.mark_count() == 0) {
    throw InvalidArgument(
        fmt::format("`label_regex` '{}' has no group in parentheses", labelling.regex), kHint);
  }
  LabelTexts texts;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    const std::string path(source.listing[i].path);
    std::smatch match;
    if (!std::regex_search(path, match, pattern) || match.length(1) == 0) {
      throw InvalidArgument(fmt::format("`label_regex` '{}' finds no label in '{}'",
                                        labelling.regex, (root / path).string()),
                            kHint);
    }
    texts.add(match.str(1));
  }
  label_by_texts(source, texts, labelling.classes, [&](std::size_t i) {
    return fmt::format("'{}'", (root / source.listing[i].path).string());
  });
}

}  // namespace

std::vector<CsvLabel> read_split_rows(const fs::path& csv, const fs::path& root) {
  return read_table(csv, {.path = "path", .label = "split", .header_is_optional = true}, root).rows;
}

CsvTable read_csv_table(const Labelling& labelling, const fs::path& root) {
  return read_table(labelling.csv, {labelling.path_column, labelling.label_column}, root);
}

std::vector<fs::path> Source::shard_files() const {
  std::vector<fs::path> files;
  for (const SourceShard& shard : shards) files.push_back(shard.given.path);
  return files;
}

std::uint64_t Source::unpacked_bytes() const {
  std::uint64_t bytes = 0;
  for (const SourceShard& shard : shards) {
    if (shard.is_copied()) bytes += shard.data.bytes;
  }
  return bytes;
}

std::string numbered_name(const fs::path& shard, std::size_t number) {
  const std::string file = shard == "-" ? "stdin" : shard.filename().string();
  return fmt::format("{}/{:08}", without_shard_ending(file), number);
}

Source label_by_folder(FolderWalk walk, const fs::path& root, const Labelling& labelling) {
  Source source;
  source.listing = std::move(walk.images);
  source.listing.sort_by_path();
  source.classes = labelling.classes;
  source.ignored = std::move(walk.ignored);
  if (labelling.kind != Labelling::Kind::kSource) return source;
  if (source.classes.empty()) {
    for (const auto& folder : walk.top_folders) {
      source.classes.push_back(escape_invalid_utf8(folder));
    }
    const std::set<std::string> distinct(source.classes.begin(), source.classes.end());
    if (distinct.size() != source.classes.size()) {
      throw InvalidArgument(
          fmt::format("two folders in '{}' have the same name after conversion to UTF-8",
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
          fmt::format("'{}' is directly in `source`, so it has no class", (root / path).string()),
          std::filesystem::is_directory(root)
              ? "Put images into one folder per class, set `labels` to none or to a CSV file, or "
                "set "
                "`label_regex`."
              : "In an archive, put images into one folder per class, or next to a .cls, .json or "
                ".txt file of the same name. Or set `labels` to none or to a CSV file.");
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

void label_by_csv(Source& source, const fs::path& root, const Labelling& labelling) {
  const Listing all = std::move(source.listing);
  std::unordered_map<std::string_view, std::size_t> samples;
  for (std::size_t i = 0; i < all.size(); ++i) samples.emplace(all[i].path, i);
  list_rows(source, root, labelling, [&](const CsvLabel& row, const std::string& where) {
    const auto found = samples.find(row.path);
    if (found != samples.end()) return all[found->second];
    throw InvalidArgument(
        fmt::format("{}: there is no '{}' in '{}'", where, row.path, root.string()),
        all.size() == 0 ? "" : fmt::format("The first sample there is '{}'.", all[0].path));
  });
}

void label_by_texts(Source& source, const LabelTexts& texts,
                    const std::vector<std::string>& fixed_classes, const LabelTexts::Where& where) {
  LabelTexts::Numbers numbers = texts.number(fixed_classes, where);
  source.classes = std::move(numbers.classes);
  for (std::size_t i = 0; i < numbers.labels.size(); ++i) {
    source.listing.set_label(i, numbers.labels[i]);
  }
}

Labelling parse_labelling(const ImageJobOptions& options) {
  Labelling labelling{.path_column = options.path_column,
                      .label_column = options.label_column,
                      .regex = options.label_regex,
                      .image_key = options.image_key,
                      .label_key = options.label_key,
                      .proto = options.proto,
                      .message = options.message};
  if (options.labels == "none") {
    labelling.kind = Labelling::Kind::kNone;
  } else if (options.labels != "folder") {
    labelling.kind = Labelling::Kind::kCsv;
    labelling.csv = options.labels;
  } else if (!options.label_regex.empty()) {
    labelling.kind = Labelling::Kind::kRegex;
  }
  const bool has_columns = !options.path_column.empty() || !options.label_column.empty();
  if (has_columns && labelling.kind != Labelling::Kind::kCsv) {
    throw InvalidArgument("`path_column` and `label_column` need a CSV file in `labels`");
  }
  if (!options.label_regex.empty() && labelling.kind != Labelling::Kind::kRegex) {
    throw InvalidArgument("`label_regex` cannot be combined with `labels`",
                          "`label_regex` takes the label from the path of each image.");
  }
  if (!options.classes.empty()) labelling.classes = read_class_names(options.classes);
  return labelling;
}

void name_classes(Source& source, const std::vector<std::string>& names) {
  if (!source.classes.empty()) return;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    const auto label = static_cast<std::uint64_t>(source.listing[i].label);  // -1 becomes large
    if (label >= names.size()) return;  // the names belong to something else
  }
  source.classes = names;
}

namespace {

/// Refuses a share if the names in the folders that it lists have changed.
void check_times(const FolderTimes& times, const fs::path& root, const found::Shares& shares,
                 std::uint64_t share) {
  const std::vector<FolderTimes::value_type> folders(times.begin(), times.end());
  tbb::parallel_for(std::size_t{0}, folders.size(), [&](std::size_t i) {
    const auto& [folder, time] = folders[i];
    struct stat status {};
    const fs::path path = folder.empty() ? root : root / folder;
    if (::stat(path.c_str(), &status) != 0 || mtime_ns(status) != time) shares.refuse(share, path);
  });
}

Source label_walk(FolderWalk walk, const fs::path& root, const Labelling& labelling) {
  Source source = label_by_folder(std::move(walk), root, labelling);
  if (labelling.kind == Labelling::Kind::kRegex) label_by_regex(source, root, labelling);
  return source;
}

}  // namespace

nlohmann::ordered_json list_folder_share(const fs::path& root, const Labelling& labelling,
                                         Share share) {
  if (labelling.kind != Labelling::Kind::kCsv) return found::to_json(walk_folder(root, share));
  const auto rows = read_csv_table(labelling, root).rows;
  FolderWalk walk;
  for (std::size_t i = share.index; i < rows.size(); i += share.count) {
    walk.images.add(stat_listed(root, rows[i].path, place(labelling.csv, rows[i])));
  }
  return found::to_json(walk);
}

Source open_folder_shares(const fs::path& root, const Labelling& labelling,
                          const found::Shares& shares) {
  std::vector<FolderWalk> walks;
  for (std::uint64_t i = 0; i < shares.count(); ++i) {
    walks.push_back(found::walk_of(shares.read(i)));
    check_times(walks.back().times, root, shares, i);
  }
  FolderWalk walk = joined(std::move(walks));
  if (labelling.kind != Labelling::Kind::kCsv) return label_walk(std::move(walk), root, labelling);
  Source source;
  source.listing = std::move(walk.images);
  label_by_csv(source, root, labelling);
  return source;
}

Source open_folder(const fs::path& root, const Labelling& labelling) {
  if (labelling.kind != Labelling::Kind::kCsv) {
    return label_walk(walk_folder(root), root, labelling);
  }
  Source source;
  list_rows(source, root, labelling, [&](const CsvLabel& row, const std::string& where) {
    return stat_listed(root, row.path, where);
  });
  return source;
}

}  // namespace precache
