// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/job/shard_builder.hpp"
#include "convert/source/source.hpp"
#include "formats/os/file.hpp"
#include "formats/os/folder.hpp"

namespace precache {

/// A file in OUT that a job replaces, as it was when the job began.
struct ReplacedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;

  friend bool operator==(const ReplacedFile&, const ReplacedFile&) = default;
};

/// What a job remembers until it is finished, in `OUT/.precache/`:
///
///   .lock                       held while a process works on OUT: shared by parts, else exclusive
///   JOB/prepare.lock            held while the listing is made, so that parts make it once
///   JOB/job.json                the plan's identity, the options and what is known of the source
///   JOB/listing                 the frozen listing of the source
///   JOB/unpacked.ATTEMPT/       plain copies of shards that are compressed or came through a pipe
///   JOB/train-000000.tar.ATTEMPT.part   a shard while one attempt writes it
///   JOB/train-000000.tar.json   the result of a shard, written before the shard gets its final
///   name JOB/train-000000.tar.lock   held while a process writes the shard
///
/// Locks only save work. Attempts that do not see each other's locks write equal bytes to names of
/// their own, and each result names the plan that it belongs to.
///
/// Nothing is reached or removed through a symbolic link, and only files with names of the forms
/// above are ever removed.
class WorkFolder {
 public:
  /// Creates the folder if need be and locks OUT. Throws InvalidArgument if a work folder is a
  /// symbolic link, IoError also if another process holds the lock.
  WorkFolder(const std::filesystem::path& out, const std::string& job, bool shared);
  /// If nothing was frozen, removes what it has made: a job that is refused leaves no trace.
  ~WorkFolder();

  /// Waits until no other part prepares.
  [[nodiscard]] File lock_preparation() const;
  /// Whether a job was frozen, by this or an earlier run.
  [[nodiscard]] bool is_prepared() const { return std::filesystem::exists(folder_ / "job.json"); }
  /// The identity of the frozen job's plan; empty if there is no job, or if it cannot be read.
  [[nodiscard]] std::string frozen_plan() const;
  /// The identity of the plan of the job at hand.  REQUIRES: freeze() or load().
  [[nodiscard]] const std::string& plan() const { return plan_; }
  /// Where to make a folder of copies.
  [[nodiscard]] std::filesystem::path folder_for_copies() const;

  /// Keeps the source, listed at `root`, and what the job will replace. `identity` is a JSON
  /// object.
  void freeze(const std::string& identity, const Source& source, const std::filesystem::path& root,
              const std::vector<ReplacedFile>& replaced);
  /// The source as it was frozen. Throws InvalidArgument if that was with another identity, or if
  /// `root` names other files now, or its files are not the same.
  [[nodiscard]] Source load(const std::string& identity, const std::filesystem::path& root);
  /// What the frozen job still has to remove.  REQUIRES: freeze() or load().
  [[nodiscard]] const std::vector<ReplacedFile>& replaced() const { return replaced_; }
  /// Whether a frozen job has not yet removed a file of this split.
  [[nodiscard]] bool is_replacing(
      const std::function<bool(const std::string& name)>& of_split) const;
  /// Takes from all other jobs in OUT what they know of the files that this one replaces; a job
  /// that knows of no other shards is forgotten.  REQUIRES: freeze() or load().
  void take_over_replaced() const;
  /// Notes that all of it is gone.
  void note_replaced();

  /// Where this attempt writes a shard.
  [[nodiscard]] std::filesystem::path temporary(const std::filesystem::path& final_path) const;
  /// The result of a shard whose file is whole at `final_path`, or nothing. Results of another plan
  /// do not count. Throws CorruptData if the result is damaged.
  [[nodiscard]] std::optional<ShardResult> result(const std::filesystem::path& final_path) const;
  /// As result(), but a damaged one does not count either if the job is to `overwrite`. Throws
  /// InvalidArgument if the file was not made by this job: it is the user's.
  [[nodiscard]] std::optional<ShardResult> usable_result(const std::filesystem::path& final_path,
                                                         bool overwrite) const;
  /// As result(), and makes sure that the file is the one of the result: a late attempt of a job
  /// that was replaced may have renamed its own over it. Throws IoError if it is not there, or not
  /// that one; the next run then makes it again.
  [[nodiscard]] ShardResult published_result(const std::filesystem::path& final_path) const;
  /// Notes the result of a shard that is about to get its final name. Throws IoError if the job was
  /// finished or replaced by another process in the meantime.
  void save_result(const std::filesystem::path& final_path, const ShardResult& result) const;

  /// Forgets the job, and removes `OUT/.precache/` if no other job needs it.
  void remove();

 private:
  void remove_quietly(const std::function<bool(const Folder::Entry&)>& chosen);
  /// Changes when job.json does.
  [[nodiscard]] std::array<std::uint64_t, 3> job_stamp() const;
  void remove_abandoned() const;
  /// Throws IoError if the job was finished or replaced by another process.
  void check_is_current() const;

  std::filesystem::path root_;
  std::string job_;
  std::filesystem::path folder_;
  std::string attempt_;
  bool shared_;
  bool made_out_;
  bool removed_ = false;
  File lock_;
  std::string plan_;  // of the job that was frozen or loaded
  std::array<std::uint64_t, 3> job_stamp_{};
  std::vector<ReplacedFile> replaced_;
};

/// The shards in OUT that unfinished jobs of any kind have made, or have begun to replace.
[[nodiscard]] std::vector<std::string> shards_of_unfinished_jobs(const std::filesystem::path& out);

}  // namespace precache
