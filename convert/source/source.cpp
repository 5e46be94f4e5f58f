// SPDX-License-Identifier: Apache-2.0
#include "convert/source/source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <set>
#include <unordered_map>

#include "convert/source/class_names.hpp"
#include "convert/source/csv_labels.hpp"
#include "convert/source/folder_walk.hpp"
#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
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
                            "Paths in the file are relative to `source`.");
    }
    throw IoError("cannot read", full, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw InvalidArgument(fmt::format("{}: '{}' is not a regular file", where, full.string()));
  }
  return {path, static_cast<std::uint64_t>(status.st_size), mtime_ns(status), -1};
}

/// The rows of a CSV file with their paths in one form, below the root and each once.
std::vector<CsvLabel> read_rows(const fs::path& csv) {
  auto rows = parse_csv_labels(as_text(read_file(csv)), csv);
  std::unordered_map<std::string, std::size_t> lines;
  for (CsvLabel& row : rows) {
    const std::string path = fs::path(row.path).lexically_normal().string();
    if (fs::path(path).is_absolute() || *fs::path(path).begin() == "..") {
      throw InvalidArgument(
          fmt::format("{}: '{}' is not below `source`", place(csv, row), row.path));
    }
    if (const auto [first, is_new] = lines.emplace(path, row.line); !is_new) {
      throw InvalidArgument(fmt::format("{}: '{}' was already named in line {}", place(csv, row),
                                        row.path, first->second));
    }
    row.path = path;
  }
  return rows;
}

using Find = std::function<ListedFile(const CsvLabel& row, const std::string& where)>;

void list_rows(Source& source, const Labelling& labelling, const Find& find) {
  const auto rows = read_rows(labelling.csv);
  Listing listing;
  LabelTexts texts;
  for (const CsvLabel& row : rows) {
    listing.add(find(row, place(labelling.csv, row)));
    texts.add(row.label);
  }
  source.listing = std::move(listing);
  label_by_texts(source, texts, labelling.classes,
                 [&](std::size_t i) { return place(labelling.csv, rows[i]); });
  source.listing.sort_by_path();
}

}  // namespace

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

Source label_by_folder(FolderWalk walk, const fs::path& root, const Labelling& labelling) {
  Source source;
  source.listing = std::move(walk.images);
  source.listing.sort_by_path();
  source.classes = labelling.classes;
  source.left_out = std::move(walk.left_out);
  if (labelling.kind != Labelling::Kind::kSource) return source;
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
          fmt::format("'{}' lies directly in `source`, so it has no class", (root / path).string()),
          std::filesystem::is_directory(root)
              ? "Put images into one folder per class, or set `labels` to none or to a CSV file."
              : "In an archive, images have a folder per class, or a .cls, .json or .txt file of "
                "the "
                "same name. Or set `labels` to none or to a CSV file.");
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
  list_rows(source, labelling, [&](const CsvLabel& row, const std::string& where) {
    const auto found = samples.find(row.path);
    if (found != samples.end()) return all[found->second];
    throw InvalidArgument(
        fmt::format("{}: there is no '{}' in '{}'", where, row.path, root.string()),
        all.size() == 0 ? "" : fmt::format("Its first sample is '{}'.", all[0].path));
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

Labelling parse_labelling(const std::string& labels, const fs::path& classes,
                          const std::string& image_key, const std::string& label_key) {
  Labelling labelling;
  labelling.image_key = image_key;
  labelling.label_key = label_key;
  if (labels == "none") {
    labelling.kind = Labelling::Kind::kNone;
  } else if (labels != "folder") {
    labelling.kind = Labelling::Kind::kCsv;
    labelling.csv = labels;
  }
  if (!classes.empty()) labelling.classes = read_class_names(classes);
  return labelling;
}

void name_classes(Source& source, const std::vector<std::string>& names) {
  if (!source.classes.empty()) return;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    const auto label = static_cast<std::uint64_t>(source.listing[i].label);  // -1 becomes large
    if (label >= names.size()) return;  // the names are of something else
  }
  source.classes = names;
}

Source open_folder(const fs::path& root, const Labelling& labelling) {
  if (labelling.kind != Labelling::Kind::kCsv) {
    return label_by_folder(walk_folder(root), root, labelling);
  }
  Source source;
  list_rows(source, labelling, [&](const CsvLabel& row, const std::string& where) {
    return stat_listed(root, row.path, where);
  });
  return source;
}

}  // namespace precache
