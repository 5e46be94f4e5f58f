// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convert/job/collect.hpp"
#include "convert/job/out_folder.hpp"
#include "convert/job/plan.hpp"
#include "convert/job/same_source.hpp"
#include "convert/job/shard_locks.hpp"
#include "convert/job/shard_run.hpp"
#include "convert/job/work_folder.hpp"
#include "convert/source/unpacker.hpp"
#include "precache/convert/job.hpp"

namespace precache {

/// The options that every job has.
struct JobRequest {
  std::filesystem::path source{};
  std::filesystem::path out{};
  std::string work_name{};            // of its work folder
  std::vector<std::string> splits{};  // to make
  Format format = Format::kTar;
  bool is_encoded = false;  // makes shards of encoded images, not of tensors
  bool may_skip = false;    // samples can be rejected
  bool overwrite = false;
  JobStep step = JobStep::kWhole;
  Share share{};                   // of a part, or of a preparation
  std::uint64_t parts = 0;         // for messages; 0: as many as ran last
  const char* space_hint = "";     // what to do if the disk is too small
  const char* finished_hint = "";  // what to do if `out` holds another finished split
};

struct JobSplit {
  std::string name;
  Plan plan;
  std::shared_ptr<const Framing> framing{};  // of tensors
  std::uint64_t first_slice = 0;             // of its shards in the plan file, if there is one
};

/// The free space of the file system at `path`, or at the folder where it will be created.
[[nodiscard]] std::uint64_t free_bytes_at(std::filesystem::path path);

/// One run of a job that writes shards, from the lock to the manifest: it resumes an earlier, equal
/// run, replaces a split if told to, checks the space, and publishes. A job derives from it and
/// supplies its identity, its plan, its manifest entry and the way to write shards.
class ShardJob {
 public:
  ShardJob(const ShardJob&) = delete;
  ShardJob& operator=(const ShardJob&) = delete;
  virtual ~ShardJob() = default;

  /// Fills the report.
  void run();
  /// Plans as run() does and writes nothing. Shards that must be unpacked are copied to the
  /// system's folder for temporary files meanwhile.
  void plan_only();

 protected:
  /// Throws InvalidArgument if a split does not have a valid name.
  ShardJob(JobRequest request, JobProgress& progress, JobReport& report, JobEstimate& estimate);

  // Supplied by each job.

  /// A JSON object of all options that determine the bytes of the shards.
  [[nodiscard]] virtual nlohmann::ordered_json identity() const = 0;
  /// Lists the source. A job whose plan follows from its identity needs no listing.
  [[nodiscard]] virtual Source list(Unpacker& /*unpacker*/) { return {}; }
  /// Writes down a share of what list() will find. Only jobs with a listing can.
  virtual void list_share(const std::filesystem::path& /*path*/) {}
  /// Writes the plan of source(), whose identity is this, if it does not follow from the identity
  /// alone; and reads it in place of the listing. Throws as PlanFile does.
  virtual void save_plan(const std::filesystem::path& /*path*/, const std::string& /*identity*/) {}
  virtual void open_plan(const std::filesystem::path& /*path*/, const std::string& /*identity*/) {}
  /// Throws CorruptData if any byte of that file is damaged.
  virtual void verify_plan(const std::filesystem::path& /*path*/) const {}
  /// Listing::stamp() of the source. Known after make_plan() and open_plan().
  [[nodiscard]] virtual std::uint64_t source_stamp() const { return 0; }
  /// As check_same_source(), for a source that was listed at this path.
  virtual void find_source(Source& /*source*/, const std::string& /*listed_root*/) {}
  /// Plans the splits of source(), which was listed now or by an earlier run.
  [[nodiscard]] virtual std::vector<JobSplit> make_plan() = 0;
  /// The manifest without its splits. Of tensors only. Before make_plan(), without classes.
  [[nodiscard]] virtual Manifest dataset() const { return {}; }
  /// The manifest entry of a split. Shards, samples and skipped samples are added to it.
  [[nodiscard]] virtual SplitEntry planned_entry(const JobSplit& split) const = 0;
  /// The text of the manifest with this split alone.
  [[nodiscard]] virtual std::string manifest_json(const std::string& split,
                                                  const SplitEntry& entry) const;
  /// Refuses a plan that does not fit what `out` holds. `is_new`: no earlier run has begun it.
  virtual void check_plan(bool /*is_new*/) {}
  /// Adds to the estimate, once the plan is known.
  virtual void describe_plan() {}
  /// About how many bytes a shard will have.
  [[nodiscard]] virtual std::uint64_t shard_bytes(const JobSplit& split, std::uint64_t shard) const;
  /// Describes how the source differs from that of a finished split.
  [[nodiscard]] virtual std::string source_difference(const JobSplit& /*split*/) {
    return "the source differs";
  }
  /// Reads samples, to compare them with those of a finished split; none if comparing the manifests
  /// was enough.
  [[nodiscard]] virtual std::function<SampleCrc()> crc_reader(const JobSplit& split) const = 0;
  /// Writes these shards, with calls(). Sets the status if it ends early for another reason than
  /// `stop`.
  virtual void write(const JobSplit& split, const std::vector<PendingShard>& pending) = 0;
  /// Called before the manifest is written; by default publishes the report of skipped samples.
  /// Returns false, with a status, if there is to be no manifest.
  [[nodiscard]] virtual bool accept(const JobSplit& split, SplitResults& made,
                                    SkippedReport& skipped);
  /// Writes the manifest.
  virtual void publish(std::map<std::string, SplitEntry> entries);

  // Offered to each job.

  [[nodiscard]] OutFolder& out(const std::string& split);
  /// The manifest in `out` if it has splits that this job does not make, else null.
  [[nodiscard]] const Manifest* other_splits() const;
  [[nodiscard]] SplitReport& report_of(const std::string& split);
  /// As list() returned it.
  [[nodiscard]] const Source& source() const { return source_; }
  /// As make_plan() returned them; while shards are written, only those that are made.
  [[nodiscard]] const std::vector<JobSplit>& splits() const { return splits_; }
  /// The files that several runs wrote about their shares of the source, in order; none if no run
  /// did. Throws InvalidArgument if a share is missing.
  [[nodiscard]] std::vector<std::filesystem::path> found_shares() const;
  /// The calls for each shard that is written. Any thread may call `done`.
  [[nodiscard]] ShardCalls calls();
  /// Makes the next run write all shards again.
  void start_over();

  const JobRequest request_;
  JobProgress& progress_;
  JobReport& report_;

 private:
  void open_out();
  void find_missing();
  [[nodiscard]] bool is_finished(const std::string& split);
  /// Whether a finished split is to be made again: by this request, or by one that was interrupted.
  [[nodiscard]] bool is_replaced(const std::string& split);
  [[nodiscard]] std::filesystem::path shard_path(const JobSplit& split, std::uint64_t shard) const;
  void plan(Source source);
  void plan_splits();
  void check_dataset(bool with_classes);
  void check_finished(const JobSplit& split);
  void note_plan();
  void report_finished();
  void report_late();
  void prepare();
  void prepare_share();
  void load();
  void begin();
  void freeze(const std::vector<ReplacedFile>& replaced);
  /// Throws IoError if shards of `needed` bytes do not fit. `reusable` is the space of files that
  /// they replace.
  void check_space(std::uint64_t needed, std::uint64_t reusable) const;
  void check_whole_space(const std::vector<ReplacedFile>& replaced);
  [[nodiscard]] bool can_resume();
  [[nodiscard]] std::vector<ReplacedFile> replaceable_shards(bool overwrite);
  void find_pending();
  void write_pending();
  void write_made_by_others(std::size_t split);
  /// Adds a finished split to the report: of a part only its own shards.
  void add_finished(const std::string& split, const SplitEntry& finished);
  void add(const ShardResult& result, const std::string& split);
  [[nodiscard]] SplitResults results(const JobSplit& split, SkippedReport& skipped);
  [[noreturn]] void refuse_missing(const SplitResults& made, const JobSplit& split);
  [[nodiscard]] bool publish_all();

  JobEstimate& estimate_;
  Source source_;
  std::vector<JobSplit> splits_;
  std::mutex mutex_;                                // for the report and made_by_others_
  std::optional<WorkFolder> work_;                  // none: nothing is written
  std::optional<ShardLocks> locks_;                 // none: no lock is asked for
  std::vector<PendingShard> made_by_others_;        // made by other processes meanwhile
  std::vector<OutFolder> outs_;                     // as request_.splits
  std::set<std::string> missing_;                   // splits that are to be made
  std::vector<std::vector<PendingShard>> pending_;  // of each
};

}  // namespace precache
