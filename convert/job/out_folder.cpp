// SPDX-License-Identifier: Apache-2.0
#include "convert/job/out_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "convert/job/work_names.hpp"
#include "convert/sidecars/sidecar_file.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_finished_meanwhile(const fs::path& out) {
  throw IoError("another process has just finished a job in", out, 0,
                "Run the same command again to see the current state.");
}

std::set<std::string> names_of(const auto& files, auto name) {
  std::set<std::string> names;
  for (const auto& file : files) names.insert(file.*name);
  return names;
}

}  // namespace

OutFolder::OutFolder(fs::path out, std::string split)
    : out_(std::move(out)), split_(std::move(split)) {
  read_manifest();
  SkippedReport::check(out_);
}

void OutFolder::read_manifest() {
  manifest_.reset();
  if (fs::exists(manifest_path())) manifest_ = Manifest::read(manifest_path());
  encoded_ = EncodedManifest::read(out_);
}

void OutFolder::write_manifest() const {
  const auto write = [](const fs::path& path, bool is_empty, const auto& manifest) {
    if (!is_empty) {
      write_file_atomically(path, manifest->to_json());
    } else if (fs::exists(path)) {
      remove_file(path);
    }
  };
  write(manifest_path(), !manifest_, manifest_);
  write(out_ / kEncodedManifestName, encoded_.splits.empty(), &encoded_);
}

std::optional<SplitEntry> OutFolder::finished() const {
  if (manifest_ && manifest_->splits.contains(split_)) return manifest_->splits.at(split_);
  const auto found = encoded_.splits.find(split_);
  if (found == encoded_.splits.end()) return std::nullopt;
  SplitEntry entry{.samples = found->second.samples,
                   .skipped = found->second.skipped,
                   .source_fingerprint = found->second.source_fingerprint,
                   .content_fingerprint = found->second.content_fingerprint,
                   .shards = {}};
  for (const auto& shard : found->second.shards) {
    entry.shards.push_back({shard.file, shard.samples, shard.bytes, shard.crc32c, {}});
  }
  return entry;
}

std::string OutFolder::manifest_json() const {
  return manifest_ ? manifest_->to_json() : encoded_.to_json();
}

std::vector<ReplacedFile> OutFolder::shards_called(const std::set<std::string>& names) const {
  std::vector<ReplacedFile> listed;
  for (const std::string& name : names) {
    struct stat status {};  // of a link itself, because that is what would be removed
    if (work_names::split_of(name) != split_ || ::lstat((out_ / name).c_str(), &status) != 0)
      continue;
    if (S_ISDIR(status.st_mode)) {
      throw InvalidArgument(
          fmt::format("refusing to replace '{}': it is a folder", (out_ / name).string()),
          "Move it away, or choose another `out`.");
    }
    listed.push_back({name, static_cast<std::uint64_t>(status.st_size), mtime_ns(status)});
  }
  return listed;
}

void OutFolder::check_manifest_is_current() const {
  if (OutFolder(out_, split_).manifest_json() != manifest_json()) throw_finished_meanwhile(out_);
}

std::vector<ReplacedFile> OutFolder::replaceable_shards(bool overwrite) const {
  const auto split = finished();
  std::set<std::string> names;
  if (split) names = names_of(split->shards, &ShardEntry::file);
  for (std::string& shard : shards_of_unfinished_jobs(out_)) names.insert(std::move(shard));
  auto listed = shards_called(names);
  std::set<std::string> unlisted;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(out_, error)) {
    const std::string file = entry.path().filename().string();
    if (work_names::split_of(file) == split_) unlisted.insert(file);
  }
  if (error && error.value() != ENOENT) throw IoError("cannot list", out_, error.value());
  for (const ReplacedFile& file : listed) unlisted.erase(file.name);
  if (!unlisted.empty()) {
    check_manifest_is_current();
    throw InvalidArgument(
        fmt::format("refusing to replace '{}': no manifest and no unfinished job in '{}' lists it",
                    (out_ / *unlisted.begin()).string(), out_.string()),
        "Choose another `out` or `split`, or move the file away.");
  }
  if (!listed.empty() && !overwrite) {
    throw InvalidArgument(
        fmt::format("'{}' exists and belongs to an unfinished job",
                    (out_ / listed.front().name).string()),
        "Finish that job, set `overwrite` to replace it, or choose another `out`.");
  }
  // A finished split is replaced even if none of its shards is left, because its manifest is.
  if (listed.empty() && split && !split->shards.empty())
    listed.push_back({split->shards.front().file, 0, 0});
  return listed;
}

void OutFolder::discard_split(const std::vector<ReplacedFile>& listed) {
  read_manifest();
  const std::set<ReplacedFile> replaced(listed.begin(), listed.end());
  const auto is_unchanged = [&](const ReplacedFile& now) { return replaced.contains(now); };
  // Leave a split alone that another process has finished since the shards were listed.
  if (const auto split = finished();
      split && std::ranges::all_of(shards_called(names_of(split->shards, &ShardEntry::file)),
                                   is_unchanged)) {
    encoded_.splits.erase(split_);
    if (manifest_ && manifest_->splits.erase(split_) != 0 && manifest_->splits.empty()) {
      manifest_.reset();
    }
    write_manifest();
  }
  std::vector<fs::path> shards;
  for (const ReplacedFile& now : shards_called(names_of(listed, &ReplacedFile::name))) {
    // Else another process has written a shard of the same job by now.
    if (is_unchanged(now)) shards.push_back(out_ / now.name);
  }
  // Before the shards: a sidecar that a killed run leaves would seem to describe the new shards.
  remove_sidecars(out_, split_, shards, manifest_ ? &*manifest_ : nullptr);
  for (const auto& shard : shards) remove_file(shard);
  skipped_report().publish();
}

void OutFolder::publish(Manifest dataset) {
  read_manifest();  // without shared locks, another process may have finished a split meanwhile
  if (manifest_) {
    if (manifest_->format != dataset.format || manifest_->spec != dataset.spec ||
        manifest_->classes != dataset.classes) {
      throw_finished_meanwhile(out_);
    }
    dataset.splits.merge(manifest_->splits);  // keeps the entries of `dataset`
    dataset.recipe = manifest_->recipe;
  }
  manifest_ = std::move(dataset);
  write_manifest();
}

void OutFolder::publish(EncodedSplit split) {
  read_manifest();
  encoded_.splits[split_] = std::move(split);
  write_manifest();
}

void check_split_name(const std::string& split) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  if (split.empty() || split.front() == '.' || split.front() == '-' || split.size() > 100 ||
      !std::ranges::all_of(split, is_plain)) {
    throw InvalidArgument(fmt::format("`split` '{}' is not a valid name of a split", split),
                          "A name has up to 100 letters, digits, '_', '-' and '.', and does not "
                          "begin with '-' or '.'.");
  }
}

void check_job_folders(const fs::path& source, const char* source_field, const fs::path& out,
                       bool is_encoded) {
  if (source.empty() || out.empty()) {
    throw InvalidArgument(fmt::format("`{}` and `out` must not be empty", source_field));
  }
  std::error_code error;
  if (fs::exists(out, error) && !fs::is_directory(out, error)) {
    throw IoError("cannot write to", out, ENOTDIR,
                  "`out` must be a folder. It is created if needed.");
  }
  if (!fs::exists(out / (is_encoded ? kManifestName : kEncodedManifestName), error)) return;
  throw InvalidArgument(
      fmt::format("'{}' holds {}", out.string(),
                  is_encoded ? "a dataset of tensors" : "encoded images"),
      fmt::format("Choose another `out` for {}.", is_encoded ? "encoded images" : "tensors"));
}

}  // namespace precache
