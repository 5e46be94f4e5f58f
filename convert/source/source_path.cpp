// SPDX-License-Identifier: Apache-2.0
#include "convert/source/source_path.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>

#include "precache/formats/error.hpp"
#include "reader/shards/path_pattern.hpp"
#include "reader/shards/shard_listing.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using Kind = SourcePath::Kind;

Kind kind_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw IoError("cannot open", path, errno, kSourceHelp);
  if (S_ISDIR(status.st_mode)) return Kind::kFolder;
  return S_ISREG(status.st_mode) ? Kind::kShards : Kind::kStream;
}

bool is_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

}  // namespace

SourcePath resolve_source(const fs::path& source) {
  if (source == "-") return {Kind::kStream, {source}};
  std::vector<fs::path> files = expand_pattern(source);
  if (files.size() == 1) {
    const Kind kind = kind_of(files[0]);
    return {kind, kind == Kind::kFolder ? std::vector<fs::path>() : files};
  }
  for (const fs::path& file : files) {
    if (kind_of(file) == Kind::kShards) continue;
    throw InvalidArgument(fmt::format("'{}' is not a file", file.string()),
                          "A pattern must match shards only.");
  }
  return {Kind::kShards, std::move(files)};
}

bool holds_shards(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  if (error) throw IoError("cannot list", folder, error.value());
  return std::ranges::any_of(entries, [](const fs::directory_entry& entry) {
    std::error_code ignored;
    return is_shard_name(entry.path().filename().string()) && entry.is_regular_file(ignored);
  });
}

std::vector<fs::path> shards_in_folder(const fs::path& folder) {
  if (!holds_shards(folder)) return {};
  std::vector<fs::path> files;
  for (const ListedShard& shard : list_shards(folder, std::nullopt)) files.push_back(shard.path());
  const NameGroups groups = groups_by_name(files);
  if (groups.size() < 2) return files;
  const std::string& first = groups.begin()->first;
  throw InvalidArgument(
      fmt::format("'{}' has shards of several splits: {} and {}", folder.string(), first,
                  std::next(groups.begin())->first),
      fmt::format("Choose one with a pattern, such as '{}*'.", (folder / first).string()));
}

void check_apart(const fs::path& source, const fs::path& out) {
  const SourcePath what = resolve_source(source);
  const fs::path folder = fs::weakly_canonical(fs::absolute(out));
  if (what.kind == Kind::kFolder && is_in(folder, fs::canonical(source))) {
    throw InvalidArgument(
        fmt::format("`out` '{}' is inside `source` '{}'", out.string(), source.string()),
        "Choose another `out`; otherwise the shards would become part of the source.");
  }
  if (what.kind != Kind::kShards) return;
  for (const fs::path& file : what.files) {
    if (!is_in(fs::canonical(file), folder)) continue;
    throw InvalidArgument(
        fmt::format("`source` '{}' is inside `out` '{}'", file.string(), out.string()),
        "Choose another `out`; otherwise the source could be taken for one of its shards.");
  }
}

void check_not_in_out(const std::vector<fs::path>& files, const fs::path& out) {
  std::set<std::pair<dev_t, ino_t>> in_out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(out, error)) {
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      in_out.emplace(status.st_dev, status.st_ino);
    }
  }
  if (in_out.empty()) return;
  for (const fs::path& file : files) {
    struct stat status {};
    const int result = file == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(file.c_str(), &status);
    if (result != 0 || !in_out.contains({status.st_dev, status.st_ino})) continue;
    throw InvalidArgument(
        fmt::format("'{}' is also a file in `out` '{}'",
                    file == "-" ? "standard input" : file.string(), out.string()),
        "Choose another `out`; otherwise the input could be replaced or removed.");
  }
}

}  // namespace precache
