// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/progress_display.hpp"
#include "cli/stop_on_signal.hpp"
#include "precache/convert/job.hpp"
#include "precache/formats/usable_threads.hpp"

/// Shared by build, convert and pack.
namespace precache {

/// Throws std::system_error if the system does not let the process have so many threads.
void check_threads(unsigned jobs);

/// Does the work with so many threads; the one that calls this is one of them. Throws as
/// check_threads() does.
template <typename Work>
auto with_threads(unsigned jobs, const Work& work) {
  check_threads(jobs);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, jobs);
  return tbb::task_arena(static_cast<int>(jobs)).execute(work);
}

/// Options that do not change the result.
struct JobCommand {
  unsigned jobs = usable_threads();
  bool dry_run = false;
  bool quiet = false;
  bool json = false;
};

void add_out(CLI::App& app, std::filesystem::path& out);
void add_job_options(CLI::App& app, JobCommand& command);
/// SOURCE, and where its images and labels are.
void add_source_options(CLI::App& app, ImageJobOptions& options);
/// OUT, and what shards of images have.
void add_shard_options(CLI::App& app, ImageJobOptions& options);

/// `noun` names what is counted; `skips` says whether some of it may be skipped.
[[nodiscard]] ProgressLine describe(const JobProgress& progress, double seconds,
                                    const std::string& noun, bool skips);

/// Runs a job with its progress on stderr. Returns its report and how many seconds it took.
template <typename Work>
auto run_job(const JobCommand& command, const std::string& noun, bool skips, const Work& work) {
  // The display has a thread too, which must not start before the others are checked.
  return with_threads(command.jobs, [&] {
    JobProgress progress;
    const auto begin = std::chrono::steady_clock::now();
    const StopOnSignal stop(progress.stop);
    const ProgressDisplay display(
        command.quiet, [&](double seconds) { return describe(progress, seconds, noun, skips); });
    auto report = work(progress);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::pair(std::move(report), seconds);
  });
}

void print_disk(const JobEstimate& estimate);
/// A warning about columns that the shards will not have, if there are any.
void print_dropped(const JobEstimate& estimate, std::string_view why);
/// Prints what was resumed, how many images are damaged and how long it took.
void print_done(const JobReport& report, const std::string& noun, double seconds);
/// "4 classes", "labels 0 to 9, no names" or "no labels".
[[nodiscard]] std::string labels_text(const JobEstimate& estimate);
/// The smallest and the largest label, or null.
[[nodiscard]] nlohmann::ordered_json labels_json(const JobEstimate& estimate);
/// "12 tar shards".
[[nodiscard]] std::string shards_text(std::uint64_t count, Format format);
/// Prints the first line of a summary if an earlier run had finished the same job, and how that was
/// found out.
void print_if_complete_already(const JobReport& report, const std::filesystem::path& out);
/// The keys that all summaries share.
[[nodiscard]] nlohmann::ordered_json report_json(const JobReport& report, double seconds);
[[nodiscard]] std::string_view status_name(JobStatus status);
/// "12 of 40 shards are complete".
[[nodiscard]] std::string shards_done_text(const JobReport& report);
/// If a job was interrupted, says how to continue and ends the process as the signal does.
void say_interrupted(const JobReport& report, bool overwrite);

}  // namespace precache
