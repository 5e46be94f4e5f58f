// SPDX-License-Identifier: Apache-2.0
#include "convert/job/work_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "convert/job/differences.hpp"
#include "convert/job/same_source.hpp"
#include "convert/job/work_names.hpp"
#include "convert/source/source_json.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/bytes/text.hpp"
#include "formats/os/folder.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/convert/job_state.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw IoError("cannot create", path, error.value());
}

void refuse_link(const fs::path& path) {
  if (!is_link(path)) return;
  throw InvalidArgument(
      fmt::format("the work folder '{}' is a symbolic link", path.string()),
      "precache removes files in its work folder, so it does not follow links there. Remove the "
      "link, or choose another `out`.");
}

/// The shares that were listed: their numbers by how many there are in all.
using ShareNumbers = std::map<std::uint64_t, std::set<std::uint64_t>>;

/// Shares of one count do not fit those of another, and nothing tells which of them are meant.
[[noreturn]] void refuse_shares_of_several_counts(const ShareNumbers& shares,
                                                  const fs::path& folder) {
  std::string text;
  for (const auto& [count, there] : shares) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ",
                        ranges_text({there.begin(), there.end()}), count);
  }
  throw InvalidArgument(
      fmt::format("the source was listed in different numbers of shares: '{}' has {}",
                  folder.string(), text),
      "Keep the found-I-of-N files of one N and remove the others, or set `overwrite` to list all "
      "of the source.");
}

}  // namespace

WorkFolder::WorkFolder(const fs::path& out, const std::string& job, bool shared)
    : root_(out / kWorkFolderName),
      job_(job),
      folder_(root_ / job),
      attempt_(attempt_name()),
      shared_(shared),
      made_out_(!fs::exists(out)) {
  for (;;) {
    refuse_link(root_);
    refuse_link(folder_);
    create_folder(root_);
    try {
      lock_ = File(root_ / work_names::kLock, O_RDWR | O_CREAT | O_NOFOLLOW);
    } catch (const IoError& error) {
      if (error.code() == ENOENT) continue;  // a job that just ended has removed the folder
      throw;
    }
    if (!lock_.try_lock(!shared)) {
      throw IoError("another process is writing to", out, 0,
                    "Wait for it to end, or choose another folder.");
    }
    if (lock_.is_at_path()) break;  // else it was removed together with the folder
  }
  remove_abandoned();
}

WorkFolder::~WorkFolder() {
  try {
    if (removed_ || is_prepared() || !is_alone()) return;
    // Not more: a process whose lock cannot be seen from here may be preparing the same job.
    remove_quietly([](const Folder::Entry& entry) {
      return entry.name.ends_with(work_names::kLockEnding) || is_abandoned(entry.name);
    });
  } catch (...) {
    // Files that are left do no harm, and a destructor must not throw.
  }
}

void WorkFolder::remove_abandoned() const {
  std::optional<std::string> job;  // names copies that are needed although their process has ended
  const auto is_needed = [&](const std::string& name) {
    if (!job) job = is_prepared() ? std::string(as_text(read_file(job_path()))) : "";
    return job->find(name) != std::string::npos;
  };
  const auto remove = [&](const Folder& folder) {
    for (const Folder::Entry& entry : folder.entries()) {
      if (is_abandoned(entry.name) && !is_needed(entry.name)) work_names::remove(folder, entry);
    }
  };
  remove(Folder(root_.parent_path().empty() ? "." : root_.parent_path(), Folder::Links::kFollow));
  if (fs::exists(folder_)) remove(Folder(Folder(root_), job_));
}

fs::path WorkFolder::make_folder() const {
  create_folder(folder_);
  refuse_link(folder_);
  return folder_;
}

File WorkFolder::lock_preparation() const {
  File file(make_folder() / work_names::kPreparationLock, O_RDWR | O_CREAT | O_NOFOLLOW);
  file.lock();
  return file;
}

bool WorkFolder::is_replacing(const std::string& split) const {
  return std::ranges::any_of(job_file::replaced_by(job_path()), [&](const ReplacedFile& file) {
    return work_names::split_of(file.name) == split;
  });
}

void WorkFolder::take_over_replaced() const {
  std::set<std::string> taken;
  for (const ReplacedFile& file : replaced_) taken.insert(file.name);
  const Folder root(root_);
  for (const Folder::Entry& job : root.entries()) {
    if (!job.is_folder || job.name == job_) continue;
    const Folder folder(root, job.name);
    bool knows_others = false;
    bool knows_taken = false;
    for (const Folder::Entry& entry : folder.entries()) {
      const auto shard = work_names::shard_of_result(entry.name);
      if (!shard) continue;
      // A result without its shard, as a kill leaves it, is worth nothing.
      std::error_code ignored;
      const bool is_there = fs::exists(fs::symlink_status(root_.parent_path() / *shard, ignored));
      const bool is_taken = taken.contains(*shard);
      if (is_taken) folder.remove_file(entry.name);
      knows_taken = knows_taken || is_taken;
      knows_others = knows_others || (is_there && !is_taken);
    }
    for (const ReplacedFile& file : job_file::replaced_by(root_ / job.name / work_names::kJob)) {
      (taken.contains(file.name) ? knows_taken : knows_others) = true;
    }
    if (!knows_taken || knows_others) continue;
    folder.remove_file(work_names::kJob);
    for (const Folder::Entry& entry : folder.entries()) work_names::remove(folder, entry);
    root.remove_folder(job.name);
  }
}

std::string WorkFolder::frozen_plan() const {
  return job_file::with_usable(job_path(), [](const Json& job) {
    return job_file::has_this_version(job) ? job.at("plan").get<std::string>() : "";
  });
}

std::array<std::uint64_t, 3> WorkFolder::job_stamp() const {
  struct stat status {};
  if (::stat((job_path()).c_str(), &status) != 0) return {};
  return {status.st_ino, static_cast<std::uint64_t>(status.st_size),
          static_cast<std::uint64_t>(mtime_ns(status))};
}

std::vector<fs::path> WorkFolder::found_shares() const {
  ShareNumbers indexes;
  if (!fs::exists(folder_)) return {};
  for (const Folder::Entry& entry : Folder(Folder(root_), job_).entries()) {
    if (const auto share = work_names::found_by(entry.name)) {
      indexes[share->second].insert(share->first);
    }
  }
  if (indexes.empty()) return {};
  if (indexes.size() > 1) refuse_shares_of_several_counts(indexes, folder_);
  const auto& [count, there] = *indexes.begin();
  std::vector<std::uint64_t> missing;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!there.contains(i)) missing.push_back(i);
  }
  if (!missing.empty()) {
    throw InvalidArgument(fmt::format("shares {} of {} of the listing are missing in '{}'",
                                      ranges_text(missing), count, root_.parent_path().string()),
                          "Run `prepare` for these, or set `overwrite` to list all of the source.");
  }
  std::vector<fs::path> files;
  for (std::uint64_t i = 0; i < count; ++i) {
    files.push_back(folder_ / work_names::found(i, count));
  }
  return files;
}

fs::path WorkFolder::plan_path(const std::string& plan) const {
  return folder_ / work_names::plan(plan);
}

void WorkFolder::freeze(const JobFacts& facts, const Source& source,
                        const std::vector<ReplacedFile>& replaced) {
  // Results of an earlier job may stay, because they name another plan. So may plans, which another
  // process may be about to freeze.
  plan_ = facts.plan;
  replaced_ = replaced;
  Json splits = Json::array();
  for (const SplitEstimate& split : facts.splits) {
    splits.push_back({{"name", split.name}, {"samples", split.samples}, {"shards", split.shards}});
  }
  job_file::write(job_path(), {{"version", job_file::kVersion},
                               {"plan", plan_},
                               {"identity", Json::parse(facts.identity)},
                               {"format", name(facts.format)},
                               {"splits", std::move(splits)},
                               {"source", source.shards.empty() ? fs::canonical(facts.root).string()
                                                                : facts.root.string()},
                               {"replaces", job_file::to_json(replaced_)},
                               {"samples", to_json(source, folder_)}});
  job_stamp_ = job_stamp();
}

void WorkFolder::note_replaced() {
  if (replaced_.empty()) return;
  job_file::with(job_path(), [&](Json job) {
    job["replaces"] = Json::array();
    job_file::write(job_path(), job);
  });
  replaced_.clear();
  job_stamp_ = job_stamp();
}

std::pair<Source, std::string> WorkFolder::load(const std::string& identity) {
  Json before;
  std::string root;
  job_stamp_ = job_stamp();
  Source source = job_file::with(job_path(), [&](const Json& job) {
    job_file::check_version(job, root_.parent_path());
    plan_ = job.at("plan").get<std::string>();
    before = job.at("identity");
    root = job.at("source").get<std::string>();
    replaced_ = job_file::replaced_of_json(job.at("replaces"));
    return source_of_json(job.at("samples"), folder_);
  });
  if (const std::string text = differences(before, Json::parse(identity)); !text.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' holds an unfinished job with other options: {}",
                    root_.parent_path().string(), text),
        "Give the same options to continue it, set `overwrite` to discard it, or choose another "
        "`out`.");
  }
  return {std::move(source), std::move(root)};
}

fs::path WorkFolder::temporary(const fs::path& final_path) const {
  return folder_ / fmt::format("{}.{}.part", final_path.filename().string(), attempt_);
}

fs::path WorkFolder::result_path(const fs::path& final_path) const {
  return folder_ / (final_path.filename().string() + work_names::kResultEnding);
}

std::optional<ShardResult> WorkFolder::result(const fs::path& final_path) const {
  const auto path = result_path(final_path);
  if (!fs::exists(path)) return std::nullopt;
  ShardResult result = ShardResult::from_json(as_text(read_file(path)), path);
  if (result.plan != plan_) return std::nullopt;
  std::error_code error;
  if (fs::file_size(final_path, error) != result.entry.bytes || error) return std::nullopt;
  result.entry.file = final_path.filename().string();
  return result;
}

std::optional<ShardResult> WorkFolder::usable_result(const fs::path& final_path,
                                                     bool overwrite) const {
  // Checked first, because a result is always written before its shard.
  std::error_code ignored;
  const bool is_there = fs::exists(fs::symlink_status(final_path, ignored));
  try {
    if (auto found = result(final_path)) return found;
  } catch (const CorruptData&) {
    if (!overwrite) throw;
    return std::nullopt;
  }
  if (!is_there || fs::exists(result_path(final_path))) return std::nullopt;
  check_is_current();
  throw InvalidArgument(
      fmt::format("refusing to replace '{}': this job did not write it", final_path.string()),
      "Move the file away and run the same command again, or choose another `out`.");
}

std::optional<ShardResult> WorkFolder::published_result(const fs::path& final_path) const {
  auto found = result(final_path);
  struct stat status {};
  if (!found || ::stat(final_path.c_str(), &status) != 0) return std::nullopt;
  if (precache::mtime_ns(status) == found->mtime_ns) return found;
  // Another attempt has renamed its own file; one of the same plan has the same bytes.
  if (crc_of(File(final_path, O_RDONLY), 0, found->entry.bytes) == found->entry.crc32c) {
    return found;
  }
  found->plan.clear();  // so that the next run does not take it for a result of this plan
  write_file_atomically(result_path(final_path), found->to_json());
  throw IoError("another process has replaced", final_path, 0,
                "Run the same command again to make the shard once more.");
}

std::optional<File> WorkFolder::lock_shard(const fs::path& final_path) const {
  File file(folder_ / (final_path.filename().string() + work_names::kLockEnding),
            O_RDWR | O_CREAT | O_NOFOLLOW);
  return file.try_lock(true) ? std::optional(std::move(file)) : std::nullopt;
}

void WorkFolder::note_parts(std::uint64_t count) const {
  if (parts() != count) {
    write_file_atomically(folder_ / work_names::kParts, fmt::format("{}\n", count));
  }
}

std::uint64_t WorkFolder::parts() const { return job_file::parts_noted_in(folder_); }

void WorkFolder::check_is_current() const {
  // Without a shared lock, a process on another machine may finish or replace the job.
  if (job_stamp() == job_stamp_ || frozen_plan() == plan_) return;
  throw IoError("another process has finished or replaced the job in", root_.parent_path(), 0,
                "Run the same command again to see the current state.");
}

void WorkFolder::save_result(const fs::path& final_path, const ShardResult& result) const {
  check_is_current();
  ShardResult saved = result;
  saved.plan = plan_;
  write_file_atomically(result_path(final_path), saved.to_json());
}

void WorkFolder::remove() {
  if (!std::exchange(removed_, true)) {
    remove_quietly([](const Folder::Entry&) { return true; });
  }
}

/// Whether no other process works on OUT, as far as locks tell.
bool WorkFolder::is_alone() {
  try {
    return !shared_ || lock_.try_lock(true);
  } catch (const IoError&) {
    return false;
  }
}

void WorkFolder::remove_quietly(const std::function<bool(const Folder::Entry&)>& chosen) {
  try {  // files that cannot be removed do no harm
    const Folder root(root_);
    if (fs::exists(folder_)) {
      const Folder folder(root, job_);
      if (is_prepared()) folder.remove_file(work_names::kJob);  // first: the rest depends on it
      std::vector<Folder::Entry> entries = folder.entries();
      std::erase_if(entries, [&](const Folder::Entry& entry) { return !chosen(entry); });
      // There are as many as shards, and a call on a network file system takes a millisecond.
      tbb::parallel_for(std::size_t{0}, entries.size(),
                        [&](std::size_t i) { work_names::remove(folder, entries[i]); });
    }
    root.remove_folder(job_);
    const auto left = root.entries();
    if (left.size() > 1 || (left.size() == 1 && left.front().name != work_names::kLock)) return;
    root.remove_file(work_names::kLock);
  } catch (const IoError&) {
    return;
  }
  std::error_code error;
  fs::remove(root_, error);
  if (made_out_) fs::remove(root_.parent_path(), error);  // fails, rightly, if anything is in it
}

}  // namespace precache
