// SPDX-License-Identifier: Apache-2.0
#include "cli/job_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <latch>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/option_values.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/bytes/utf8.hpp"

namespace precache {
namespace {

using cli::add;
using cli::add_text;

std::string comparison_text(SourceComparison compared) {
  switch (compared) {
    case SourceComparison::kNames:
      return "the source has the same names, sizes and labels (the content was not compared)";
    case SourceComparison::kTimes:
      return "the source has the same names, sizes, labels and modification times";
    case SourceComparison::kContent:
      return "the source has the same names, labels and content (all of it was read)";
    case SourceComparison::kManifest:
      return "the source has the same manifest";
    case SourceComparison::kNothing:
      return "the source was not read";
  }
  return {};
}

}  // namespace

// TBB ends the process when it cannot start a thread, so this finds out before. All threads live at
// once, because limits count those that do.
void check_threads(unsigned jobs) {
  constexpr unsigned kOtherThreads = 2;  // one shows progress, one syncs shards
  std::latch end(1);
  std::vector<std::jthread> threads;
  try {
    for (unsigned i = 1; i < jobs + kOtherThreads; ++i) threads.emplace_back([&] { end.wait(); });
  } catch (...) {
    end.count_down();
    throw;
  }
  end.count_down();
}

void add_out(CLI::App& app, std::filesystem::path& out) {
  cli::add_argument(app, "OUT", "Folder for the shards; created if missing", out);
}

void add_job_options(CLI::App& app, JobCommand& command) {
  cli::add_jobs(app, 1024U, command.jobs);
  app.add_flag("--dry-run", command.dry_run, "Print the plan and write nothing");
  app.add_flag("--quiet", command.quiet, "Show no progress");
  app.add_flag("--json", command.json, "Print the summary as JSON");
}

void add_source_options(CLI::App& app, ImageJobOptions& options) {
  options.helper = kOwnProgram;
  cli::begin_group(app, "Input");
  cli::add_argument(
      app, "SOURCE",
      "A folder with one subfolder of images per class; or shards of encoded images: "
      "a tar, TFRecord or HDF5 file, a quoted pattern such as 'train-{000..127}.tar', "
      "or - for standard input. Compressed shards and pipes are unpacked into OUT "
      "until the job is finished",
      options.source);
  add_text(
      app, "--labels", "folder|none|FILE.csv [folder]",
      "folder: the class is the first folder below SOURCE, or what a shard says; none: all "
      "labels are -1; FILE.csv: rows of path,label; columns with a type in the header, such as "
      "age:float, box:int[4] and tags:multi, are stored as columns",
      options.labels);
  add_text(app, "--path-column", "NAME [path]",
           "Column of FILE.csv with the paths, by its name in the first line; other columns are "
           "ignored",
           options.path_column);
  add_text(app, "--label-column", "NAME [label]", "The same for the labels", options.label_column);
  add_text(app, "--label-regex", "REGEX",
           "Take the label from the path of each image below SOURCE: the first group of this "
           "regular expression, such as '([a-z]+)_[0-9]+'",
           options.label_regex);
  add_text(app, "--classes", "FILE|dataset.json",
           "Class names in the order of their numbers, one per line; another class is an error",
           options.classes);
  add_text(app, "--image-key", "NAME [guessed]",
           "In shards: the TFRecord feature, HDF5 dataset or tar extension of the images",
           options.image_key);
  add_text(app, "--label-key", "NAME [guessed]",
           "In shards: the same for labels; json.FIELD is a field of the .json file in a tar",
           options.label_key);
  cli::add_message_options(app, options.proto, options.message);
}

void add_shard_options(CLI::App& app, ImageJobOptions& options) {
  cli::begin_group(app, "Output");
  add_out(app, options.out);
  cli::add_enum(app, "--format", kAllFormats, "tar", "File format of the shards", options.format);
  add(app, "--split", "NAME [train]", "Name of the split; a finished OUT can get further splits",
      [&](const std::string& text) { options.split = text; });
  auto* shard_size =
      add(app, "--shard-size", "BYTES [512MiB]", "Approximate size of a shard",
          [&](const std::string& text) { options.shard_size_bytes = option_values::bytes(text); });
  cli::add_integer(app, "--shards", "N", "Number of shards, in place of --shard-size", 1U,
                   1'000'000U, options.shard_count)
      ->excludes(shard_size);
  app.add_flag("--overwrite", options.overwrite, "Replace this split if OUT already has it");
}

ProgressLine describe(const JobProgress& progress, double seconds, const std::string& noun,
                      bool skips) {
  const std::uint64_t planned = progress.samples_planned;
  const std::uint64_t done = progress.samples_done;
  if (planned == 0 && progress.bytes_unpacked != 0) {
    return {std::nullopt, fmt::format("unpacking ... {}", size_text(progress.bytes_unpacked)),
            progress.bytes_unpacked, 0, "bytes"};
  }
  if (planned == 0) return {std::nullopt, fmt::format("listing {} ...", noun)};
  const double rate = static_cast<double>(done) / seconds;
  const double share = static_cast<double>(done) / static_cast<double>(planned);
  const double rest = rate > 0 ? static_cast<double>(planned - done) / rate : 0;
  std::string text =
      fmt::format("{:.0f}% {}/{} {:.0f} {}/s {:.0f} MB/s {} left", share * 100, human::count(done),
                  human::count(planned), rate, noun,
                  static_cast<double>(progress.bytes_written) / seconds / 1e6, human::clock(rest));
  if (skips) text += fmt::format(" {} skipped", human::count(progress.samples_skipped));
  return {share, std::move(text), done, planned, noun};
}

void print_dropped(const JobEstimate& estimate, std::string_view why) {
  constexpr std::size_t kShown = 5;
  const auto& names = estimate.dropped_columns;
  if (names.empty()) return;
  std::vector<std::string> shown;  // they may be those of a hostile file
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    shown.push_back(printable(names[i]));
  }
  print_row("warning", fmt::format("{}; not {}{}", why, fmt::join(shown, ", "),
                                   names.size() > kShown ? ", ..." : ""));
}

void print_disk(const JobEstimate& estimate) {
  const std::string copies =
      estimate.bytes_unpacked == 0
          ? ""
          : fmt::format(" ({} to unpack the source)", size_text(estimate.bytes_unpacked));
  const std::string missing =
      estimate.bytes_needed <= estimate.bytes_free
          ? ""
          : fmt::format("; free {} more", size_text(estimate.bytes_needed - estimate.bytes_free));
  print_row("disk", fmt::format("{} needed{}, {} free{}", size_text(estimate.bytes_needed), copies,
                                size_text(estimate.bytes_free), missing));
}

void print_done(const JobReport& report, const std::string& noun, double seconds) {
  if (report.shards_resumed != 0 && report.status != JobStatus::kAlreadyComplete) {
    print_row("resumed", human::count(report.shards_resumed, "shard") + " from an earlier run");
  }
  if (report.damaged != 0) {
    print_row("damaged", human::count(report.damaged, "image") + " that decoders could still read");
  }
  if (report.converted != 0) {
    print_row("time", fmt::format("{}, {:.0f} {}/s", human::clock(seconds),
                                  static_cast<double>(report.converted) / seconds, noun));
  }
}

std::string labels_text(const JobEstimate& estimate) {
  if (!estimate.classes.empty()) return human::count(estimate.classes.size(), "class");
  if (!estimate.labels) return "no labels";
  return fmt::format("labels {} to {}, no names", estimate.labels->smallest,
                     estimate.labels->largest);
}

nlohmann::ordered_json labels_json(const JobEstimate& estimate) {
  if (!estimate.labels) return nullptr;
  return nlohmann::ordered_json::array({estimate.labels->smallest, estimate.labels->largest});
}

std::string shards_text(std::uint64_t count, Format format) {
  return human::count(count, fmt::format("{} shard", name(format)));
}

void print_if_complete_already(const JobReport& report, const std::filesystem::path& out) {
  if (report.status != JobStatus::kAlreadyComplete) return;
  print_wrapped(fmt::format("{}: already complete, nothing to do: {}", out.string(),
                            comparison_text(report.compared)));
}

nlohmann::ordered_json report_json(const JobReport& report, double seconds) {
  return {{"bytes", report.bytes},
          {"shards_done", report.shards_done},
          {"shards_resumed", report.shards_resumed},
          {"converted", report.converted},
          {"seconds", seconds}};
}

std::string_view status_name(JobStatus status) {
  switch (status) {
    case JobStatus::kComplete:
    case JobStatus::kAlreadyComplete:
      return "complete";
    case JobStatus::kPrepared:
      return "prepared";
    case JobStatus::kPartDone:
      return "part done";
    case JobStatus::kTooManyBad:
      return "too many bad samples";
    case JobStatus::kInterrupted:
      return "interrupted";
  }
  return {};
}

std::string shards_done_text(const JobReport& report) {
  return report.shards_planned == 0  // the job ended while the source was unpacked
             ? "no shard is complete"
             : fmt::format("{} of {} shards are complete", report.shards_done,
                           report.shards_planned);
}

void say_interrupted(const JobReport& report, bool overwrite) {
  if (report.status != JobStatus::kInterrupted) return;
  say("precache: interrupted\n  {}; run the same command{} again to continue.\n",
      shards_done_text(report), overwrite ? " without --overwrite" : "");
  StopOnSignal::raise_again();
}

}  // namespace precache
