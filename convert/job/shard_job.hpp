// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "convert/job/content_fingerprint.hpp"
#include "convert/job/out_folder.hpp"
#include "convert/job/plan.hpp"
#include "convert/job/shard_run.hpp"
#include "convert/job/work_folder.hpp"
#include "convert/source/unpacker.hpp"
#include "precache/convert/job.hpp"

namespace precache {

/// What every job is asked, whatever it makes of which source.
struct JobRequest {
  std::filesystem::path source{};
  std::filesystem::path out{};
  std::string work_name{};            // of its work folder
  std::vector<std::string> splits{};  // that it makes
  bool overwrite = false;
  std::uint64_t part_index = 0;
  std::uint64_t part_count = 0;  // 0: all shards, and the manifest
  bool finish = false;           // write no shards
  const char* space_hint = "";   // what to do where the disk is too small
};

/// What a job makes of one split. Borrows the plan.
struct JobSplit {
  std::string name;
  const Plan* plan = nullptr;
  std::function<std::uint64_t(std::uint64_t shard)> shard_bytes;  // about
};

/// The shards of a split when all are there.
struct SplitResults {
  std::vector<ShardEntry> shards;  // without columns
  std::uint64_t samples = 0;
  std::string content_fingerprint;
  std::vector<SkippedSample> skipped;
};

/// One run of a job that writes shards, from the lock to the manifest: it resumes what an earlier,
/// equal run has left, replaces what it is told to, checks the space, and publishes. A job derives
/// from it and supplies its identity, its plan, the way to write shards and its manifest entry.
class ShardJob {
 public:
  ShardJob(const ShardJob&) = delete;
  ShardJob& operator=(const ShardJob&) = delete;
  virtual ~ShardJob() = default;

  /// Fills the report.
  void run();
  /// Plans as run() does and writes nothing. Copies of what must be unpacked lie in the system's
  /// folder for temporary files meanwhile.
  void plan_only();

 protected:
  /// Throws InvalidArgument if a split cannot be called so.
  ShardJob(JobRequest request, JobProgress& progress, JobReport& report);

  // What a job supplies.

  /// A JSON object of all options that decide over the bytes of the shards.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Refuses a request that does not fit what `out` holds.
  virtual void check_out() = 0;
  [[nodiscard]] virtual Source list(Unpacker& unpacker) = 0;
  /// Plans the splits, of a source that was listed now or by an earlier run.
  virtual void make_plan(Source source) = 0;
  /// Refuses a plan that does not fit what `out` holds. `is_new`: no earlier run has begun it.
  virtual void check_plan(bool is_new) = 0;
  /// Refuses if the finished split is not what the plan would give.
  virtual void check_finished(const JobSplit& split) = 0;
  /// The plan is known; what is reported of it is to be noted.
  virtual void note_plan() = 0;
  /// As list() gave it. After make_plan(), as are the rest.
  [[nodiscard]] virtual const Source& source() const = 0;
  [[nodiscard]] virtual Format format() const = 0;
  [[nodiscard]] virtual std::vector<JobSplit> plans() const = 0;
  /// Reads samples, to compare them with those of a finished split; none: a manifest has told
  /// already.
  [[nodiscard]] virtual std::function<SampleCrc()> crc_reader(const JobSplit& split) const = 0;
  /// Writes these shards, with calls(). If it ends early but for `stop`, it sets the status.
  virtual void write(const JobSplit& split, const std::vector<PendingShard>& pending) = 0;
  /// Writes the manifest. False if the status tells why not.
  [[nodiscard]] virtual bool publish(const std::vector<JobSplit>& splits) = 0;

  // What a job is given.

  [[nodiscard]] OutFolder& out(const std::string& split);
  [[nodiscard]] bool is_finished(const std::string& split);
  /// Whether a split is to be made again if it is finished: by this request, or by one that was
  /// interrupted.
  [[nodiscard]] bool is_replaced(const std::string& split);
  /// What is to be done for each shard that is written; `done` from any thread.
  [[nodiscard]] ShardCalls calls();
  [[nodiscard]] SplitResults results(const JobSplit& split);
  /// Fills in what follows from plans() and source().
  void fill(JobEstimate& estimate) const;
  /// The next run makes all shards again.
  void start_over();

  const JobRequest request_;
  JobProgress& progress_;

 private:
  void open_out();
  [[nodiscard]] bool is_replacing(const std::string& split);
  [[nodiscard]] std::filesystem::path shard_path(const JobSplit& split, std::uint64_t shard);
  void report_finished();
  void prepare();
  void load();
  void begin();
  /// Whether the frozen job is this one.
  [[nodiscard]] bool can_resume();
  [[nodiscard]] std::vector<ReplacedFile> replaceable_shards(bool overwrite);
  void find_pending();
  void write_pending();
  void add(const ShardResult& result);

  JobReport& report_;
  std::mutex mutex_;                                // for the report
  std::optional<WorkFolder> work_;                  // none: nothing is written
  std::vector<OutFolder> outs_;                     // as request_.splits
  std::vector<JobSplit> missing_;                   // that are to be made
  std::vector<std::vector<PendingShard>> pending_;  // of each
};

/// Throws InvalidArgument if one is empty, IoError if `out` is not a folder. `source_field` is what
/// the caller calls the source.
void check_job_folders(const std::filesystem::path& source, const char* source_field,
                       const std::filesystem::path& out);

}  // namespace precache
