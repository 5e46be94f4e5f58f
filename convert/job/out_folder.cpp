// SPDX-License-Identifier: Apache-2.0
#include "convert/job/out_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <set>

#include "convert/sidecars/job_sidecars.hpp"
#include "convert/sidecars/sidecar_file.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "formats/shard/framing.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSkippedName = "skipped.tsv";
constexpr std::string_view kSkippedHeader = "split\tpath\tstage\treason\n";

// A field of a tab-separated line.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '\t':
        result += "\\t";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\\':
        result += "\\\\";
        break;
      default:
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7f) {
          result += c;
        } else {
          result += fmt::format("\\x{:02x}", byte);
        }
    }
  }
  return result;
}

[[noreturn]] void throw_finished_meanwhile(const fs::path& out) {
  throw IoError("another process has just finished a job in", out, 0,
                "Run the same command again to see what is there now.");
}

template <typename Split>
FinishedSplit finished_of(const Split& split) {
  FinishedSplit finished{{}, {}, split.samples, split.skipped, 0, split.content_fingerprint};
  if (!split.shards.empty()) finished.first_shard = split.shards.front().file;
  for (const auto& shard : split.shards) {
    finished.shards.insert(shard.file);
    finished.bytes += shard.bytes;
  }
  return finished;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

OutFolder::OutFolder(fs::path out, std::string split)
    : out_(std::move(out)), split_(std::move(split)) {
  read_manifest();
  const auto head = head_of(out_ / kSkippedName);
  const bool is_folder = fs::is_directory(out_ / kSkippedName);
  if (is_folder || (head && !head->starts_with(kSkippedHeader))) {
    throw InvalidArgument(
        fmt::format("refusing to replace '{}': precache did not write it",
                    (out_ / kSkippedName).string()),
        "The report of skipped samples has this name. Move the file away, or choose another "
        "`out`.");
  }
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

const Manifest* OutFolder::other_splits() const {
  const std::size_t own = finished_split() == nullptr ? 0 : 1;
  return manifest_ && manifest_->splits.size() > own ? &*manifest_ : nullptr;
}

const SplitEntry* OutFolder::finished_split() const {
  if (!manifest_) return nullptr;
  const auto found = manifest_->splits.find(split_);
  return found == manifest_->splits.end() ? nullptr : &found->second;
}

std::optional<FinishedSplit> OutFolder::finished() const {
  if (const SplitEntry* split = finished_split()) return finished_of(*split);
  const auto found = encoded_.splits.find(split_);
  if (found == encoded_.splits.end()) return std::nullopt;
  return finished_of(found->second);
}

fs::path OutFolder::shard_path(std::uint64_t shard, std::string_view extension) const {
  return out_ / fmt::format("{}-{:06}{}", split_, shard, extension);
}

bool OutFolder::is_shard_name(const std::string& file) const {
  const std::string ending = fs::path(file).extension().string();
  const bool known =
      std::ranges::any_of(kAllFormats, [&](Format format) { return extension(format) == ending; });
  if (!known || !file.starts_with(split_ + "-")) return false;
  const std::string_view number = std::string_view(file).substr(
      split_.size() + 1, file.size() - ending.size() - split_.size() - 1);
  // As shard_path() writes it: six digits, or more without a leading zero.
  return is_digits(number) && number.size() >= 6 && (number.size() == 6 || number.front() != '0');
}

std::vector<ReplacedFile> OutFolder::shards_called(const std::set<std::string>& names) const {
  std::vector<ReplacedFile> listed;
  for (const std::string& name : names) {
    struct stat status {};  // of a link, its own: it is what would be removed
    if (!is_shard_name(name) || ::lstat((out_ / name).c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      throw InvalidArgument(
          fmt::format("refusing to replace '{}': it is a folder", (out_ / name).string()),
          "Move it away, or choose another `out`.");
    }
    listed.push_back({name, static_cast<std::uint64_t>(status.st_size), mtime_ns(status)});
  }
  return listed;
}

bool OutFolder::are_as_listed(const std::set<std::string>& names,
                              const std::vector<ReplacedFile>& listed) const {
  return std::ranges::all_of(shards_called(names), [&](const ReplacedFile& now) {
    return std::ranges::find(listed, now) != listed.end();
  });
}

void OutFolder::check_manifest_is_current() const {
  const std::string now =
      fs::exists(manifest_path()) ? Manifest::read(manifest_path()).to_json() : "";
  if (now == (manifest_ ? manifest_->to_json() : "") &&
      EncodedManifest::read(out_).to_json() == encoded_.to_json()) {
    return;
  }
  throw_finished_meanwhile(out_);
}

std::vector<ReplacedFile> OutFolder::replaceable_shards(bool overwrite) const {
  const auto split = finished();
  std::set<std::string> names = split ? split->shards : std::set<std::string>();
  for (std::string& shard : shards_of_unfinished_jobs(out_)) names.insert(std::move(shard));
  auto listed = shards_called(names);
  std::set<std::string> unlisted;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(out_, error)) {
    const std::string file = entry.path().filename().string();
    if (is_shard_name(file)) unlisted.insert(file);
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
  // A finished split is replaced even if none of its shards is left: its manifest is.
  if (listed.empty() && split && !split->shards.empty())
    listed.push_back({*split->shards.begin(), 0, 0});
  return listed;
}

void OutFolder::discard_split(const std::vector<ReplacedFile>& listed) {
  read_manifest();
  // A split that was finished since is not the one that is replaced.
  if (const auto split = finished(); split && are_as_listed(split->shards, listed)) {
    encoded_.splits.erase(split_);
    if (manifest_ && manifest_->splits.erase(split_) != 0 && manifest_->splits.empty()) {
      manifest_.reset();
    }
    write_manifest();
  }
  std::vector<fs::path> shards;
  for (const ReplacedFile& file : listed) {
    // Another process may have put a shard of the same job there by now.
    const auto now = shards_called({file.name});
    if (!now.empty() && now.front() == file) shards.push_back(out_ / file.name);
  }
  // Before the shards: a sidecar that a killed run left would be taken for one of the new shards.
  remove_sidecars(out_, split_, shards, manifest_ ? &*manifest_ : nullptr);
  for (const auto& shard : shards) remove_file(shard);
  publish_skipped({});
}

std::string OutFolder::skipped_lines(bool own) const {
  std::string lines;
  const auto path = out_ / kSkippedName;
  if (!fs::exists(path)) return lines;
  const auto bytes = read_file(path);
  std::string_view rest = as_text(bytes);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    if (line != kSkippedHeader && line.starts_with(split_ + "\t") == own) lines += line;
    rest.remove_prefix(end);
  }
  return lines;
}

std::string OutFolder::skipped_lines() const { return skipped_lines(true); }

void OutFolder::publish_skipped_lines(const std::string& lines) const {
  const auto path = out_ / kSkippedName;
  const std::string all = skipped_lines(false) + lines;  // keeps what other splits have there
  if (!all.empty()) {
    write_file_atomically(path, std::string(kSkippedHeader) + all);
  } else if (fs::exists(path)) {
    remove_file(path);
  }
}

void OutFolder::publish_skipped(const std::vector<SkippedSample>& skipped) const {
  std::string lines;
  for (const auto& sample : skipped) {
    lines += fmt::format("{}\t{}\t{}\t{}\n", split_, escaped(sample.path), sample.stage,
                         escaped(sample.reason));
  }
  publish_skipped_lines(lines);
}

void OutFolder::publish(Manifest dataset) {
  read_manifest();  // where locks are not shared, another split may have been finished meanwhile
  if (manifest_) {
    if (manifest_->format != dataset.format || manifest_->spec != dataset.spec ||
        manifest_->classes != dataset.classes) {
      throw_finished_meanwhile(out_);
    }
    dataset.splits.merge(manifest_->splits);  // keeps what it has
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
    throw InvalidArgument(fmt::format("`split` '{}' cannot be the name of a split", split),
                          "A name has up to 100 letters, digits, '_', '-' and '.', and does not "
                          "begin with '-' or '.'.");
  }
}

}  // namespace precache
