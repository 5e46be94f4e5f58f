// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/progress_display.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/workers.hpp"
#include "precache/convert/job.hpp"
#include "precache/formats/usable_threads.hpp"

/// What build, convert and pack have in common.
namespace precache {

/// Options that do not change what is made.
struct JobCommand {
  unsigned jobs = usable_threads();
  bool dry_run = false;
  bool quiet = false;
  bool json = false;
};

void add_out(CLI::App& app, std::filesystem::path& out);
void add_job_options(CLI::App& app, JobCommand& command);
/// SOURCE, OUT, and what a source of images and its shards have.
void add_image_job_options(CLI::App& app, ImageJobOptions& options);

/// `noun` names what is counted; `skips`: some of it may be skipped.
[[nodiscard]] ProgressLine describe(const JobProgress& progress, double seconds,
                                    const std::string& noun, bool skips);

/// Does the work of a job, with its progress on stderr, and gives its report and the seconds that
/// it took.
template <typename Work>
auto run_job(const JobCommand& command, const std::string& noun, bool skips, const Work& work) {
  Workers workers(command.jobs);
  JobProgress progress;
  const auto begin = std::chrono::steady_clock::now();
  const StopOnSignal stop(progress.stop);
  const ProgressDisplay display(
      command.quiet, [&](double seconds) { return describe(progress, seconds, noun, skips); });
  auto report = workers.execute([&] { return work(progress); });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return std::pair(std::move(report), seconds);
}

/// A line of a summary; nothing if the text is empty.
void print_row(std::string_view title, const std::string& text);
void print_disk(const JobEstimate& preview);
/// What was resumed, how large the result is and how long it took.
void print_done(const JobReport& report, const std::string& noun, double seconds);
/// "12 tar shards".
[[nodiscard]] std::string shards_text(std::uint64_t count, Format format);
/// The first line of a summary if an earlier run had finished the same job, and how that was found.
void print_if_complete_already(const JobReport& report, const std::filesystem::path& out);
/// The keys that all summaries have.
[[nodiscard]] nlohmann::ordered_json report_json(const JobReport& report, double seconds);
[[nodiscard]] std::string_view status_name(JobStatus status);
/// "12 of 40 shards are complete".
[[nodiscard]] std::string shards_done_text(const JobReport& report);
/// If a job was interrupted, says how to continue and ends the process as the signal does.
void say_interrupted(const JobReport& report, bool overwrite);

}  // namespace precache
