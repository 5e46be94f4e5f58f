// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/job/job_file.hpp"
#include "convert/job/shard_builder.hpp"
#include "convert/job/work_names.hpp"
#include "convert/source/source.hpp"
#include "formats/os/file.hpp"
#include "formats/os/folder.hpp"

namespace precache {

/// The state of a job until it is finished, in `OUT/.precache/`:
///
///   .lock                       held while a process works on OUT: exclusive by whole jobs, shared
///                               by their steps on several machines
///   JOB/prepare.lock            held while the listing is made, so that parts make it once
///   JOB/job.json                the plan's identity, the options and the facts about the source
///   JOB/plan.DIGITS             the frozen plan of that identity, see PlanFile
///   JOB/found-I-of-N            the content of one of N shares of the source
///   JOB/parts                   the number of parts that was used last
///   JOB/unpacked.ATTEMPT/       plain copies of shards that are compressed or came through a pipe
///   JOB/train-000000.tar.ATTEMPT.part   a shard while one attempt writes it
///   JOB/train-000000.tar.json   its result, written before the shard gets its final name
///   JOB/train-000000.tar.lock   held while a process writes the shard
///
/// Locks only save work. Attempts that do not see each other's locks write equal bytes under
/// different names, and each result names its plan.
///
/// A part of a frozen job takes no lock that another part holds alone.
///
/// No symbolic link is followed, and only files with names of the forms above are ever removed.
class WorkFolder {
 public:
  /// Creates the folder if needed and locks OUT. Throws InvalidArgument if a work folder is a
  /// symbolic link, and IoError, including when another process holds the lock.
  WorkFolder(const std::filesystem::path& out, const std::string& job, bool shared);
  /// If nothing was frozen, removes all files that it has made: a refused job leaves no trace.
  ~WorkFolder();

  /// Waits until no other part prepares.
  [[nodiscard]] File lock_preparation() const;
  /// Whether a job was frozen, by this or an earlier run.
  [[nodiscard]] bool is_prepared() const { return std::filesystem::exists(job_path()); }
  /// The identity of the frozen job's plan; empty if there is no job or it cannot be read.
  [[nodiscard]] std::string frozen_plan() const;
  /// The identity of the current job's plan.  REQUIRES: freeze() or load().
  [[nodiscard]] const std::string& plan() const { return plan_; }
  /// The folder of the job, which is created if needed.
  [[nodiscard]] std::filesystem::path make_folder() const;

  /// The files that prepared shares of the listing left, in order; none if there are none. Throws
  /// InvalidArgument if some are missing, or if there are shares of different numbers.
  [[nodiscard]] std::vector<std::filesystem::path> found_shares() const;
  /// The file with the plan of this identity.
  [[nodiscard]] std::filesystem::path plan_path(const std::string& plan) const;

  /// Writes down a job whose plan file is complete.
  void freeze(const JobFacts& facts, const Source& source,
              const std::vector<ReplacedFile>& replaced);
  /// The source as it was frozen, without its listing, and the path at which it was listed. Throws
  /// InvalidArgument if the identity was another, Unsupported if another version froze the job.
  [[nodiscard]] std::pair<Source, std::string> load(const std::string& identity);
  /// The files that the frozen job still has to remove.  REQUIRES: freeze() or load().
  [[nodiscard]] const std::vector<ReplacedFile>& replaced() const { return replaced_; }
  /// Whether a frozen job still has to remove a shard of this split.
  [[nodiscard]] bool is_replacing(const std::string& split) const;
  /// Makes all other jobs in OUT forget the files that this one replaces; a job that knows of no
  /// other shards is removed.  REQUIRES: freeze() or load().
  void take_over_replaced() const;
  /// Notes that all replaced files are removed.
  void note_replaced();

  /// The path at which this attempt writes a shard.
  [[nodiscard]] std::filesystem::path temporary(const std::filesystem::path& final_path) const;
  /// Takes the lock of a shard for the life of the file; none if another process holds it.
  [[nodiscard]] std::optional<File> lock_shard(const std::filesystem::path& final_path) const;
  /// Notes how many parts a job has, for reports of what is missing.
  void note_parts(std::uint64_t count) const;
  /// The number that was noted last; 0 if none was.
  [[nodiscard]] std::uint64_t parts() const;

  /// The result of a shard whose file is complete at `final_path`; none if there is none or it
  /// belongs to another plan. Throws CorruptData if the result is damaged, unless `overwrite` is
  /// set, and InvalidArgument if this job did not make the file: it is the user's.
  [[nodiscard]] std::optional<ShardResult> usable_result(const std::filesystem::path& final_path,
                                                         bool overwrite) const;
  /// The same; none as well if there is no such file. Checks that the file matches the result: a
  /// late attempt of a job that was replaced may have renamed its own file over it. Throws IoError
  /// then; the next run makes it again.
  [[nodiscard]] std::optional<ShardResult> published_result(
      const std::filesystem::path& final_path) const;
  /// Notes the result of a shard that is about to get its final name. Throws IoError if the job was
  /// finished or replaced by another process in the meantime.
  void save_result(const std::filesystem::path& final_path, const ShardResult& result) const;

  /// Forgets the job, and removes `OUT/.precache/` if no other job needs it. Attempts that are late
  /// find nothing to work on and end.
  void remove();

 private:
  [[nodiscard]] std::filesystem::path job_path() const { return folder_ / work_names::kJob; }
  [[nodiscard]] std::filesystem::path result_path(const std::filesystem::path& final_path) const;
  [[nodiscard]] std::optional<ShardResult> result(const std::filesystem::path& final_path) const;
  void remove_quietly(const std::function<bool(const Folder::Entry&)>& chosen);
  [[nodiscard]] bool is_alone();
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

}  // namespace precache
