// SPDX-License-Identifier: Apache-2.0
#include "cli/job_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/option_values.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"

namespace precache {
namespace {

using cli::add;
using cli::add_text;

std::string comparison_text(SourceComparison compared) {
  switch (compared) {
    case SourceComparison::kNames:
      return "the source has the same names, sizes and labels (its content was not compared)";
    case SourceComparison::kTimes:
      return "the source has the same names, sizes, labels and modification times";
    case SourceComparison::kContent:
      return "the source has the same names, labels and content, which was read";
    case SourceComparison::kManifest:
      return "the source has the same manifest";
  }
  return {};
}

}  // namespace

void add_out(CLI::App& app, std::filesystem::path& out) {
  app.add_option("OUT", out, "Folder for the shards; made if missing")
      ->required()
      ->option_text(" ");
}

void add_job_options(CLI::App& app, JobCommand& command) {
  cli::add_integer(app, "--jobs", fmt::format("N [{}]", command.jobs), "Worker threads", 1U, 1024U,
                   command.jobs);
  app.add_flag("--dry-run", command.dry_run, "Print the plan, write nothing");
  app.add_flag("--quiet", command.quiet, "No progress");
  app.add_flag("--json", command.json, "Summary as JSON on stdout");
}

void add_image_job_options(CLI::App& app, ImageJobOptions& options) {
  options.helper = kOwnProgram;
  app.add_option("SOURCE", options.source,
                 "Folder of images, one subfolder per class; or shards of encoded images: tar, "
                 "TFRecord, HDF5, a pattern of them ('train-{000..127}.tar'), or - for one on "
                 "standard input. What is compressed by gzip or zlib, or comes through a pipe, is "
                 "unpacked into OUT until the job is finished")
      ->required()
      ->option_text(" ");
  add_out(app, options.out);
  cli::add_enum(app, "--format", kAllFormats, "tar", "File format of the shards", options.format);
  add(app, "--split", "NAME [train]", "Name of the split; another one may join a finished OUT",
      [&](const std::string& text) { options.split = text; });
  add_text(app, "--labels", "folder|none|FILE.csv [folder]",
           "Class: the first folder below SOURCE, or what a shard says; none (-1); or path,label "
           "rows",
           options.labels);
  add_text(app, "--image-key", "NAME",
           "In shards: the TFRecord feature, HDF5 dataset or tar extension of images [guessed]",
           options.image_key);
  add_text(app, "--label-key", "NAME",
           "The same of labels; json.FIELD in a tar is a field of .json", options.label_key);
  cli::add_message_options(app, options.proto, options.message);
  add_text(app, "--classes", "FILE|dataset.json",
           "Fixes class names and their numbers; an unknown class is an error", options.classes);
  auto* shard_size =
      add(app, "--shard-size", "BYTES [512MiB]", "About how large a shard is",
          [&](const std::string& text) { options.shard_size_bytes = option_values::bytes(text); });
  cli::add_integer(app, "--shards", "N", "How many shards", 1U, 1'000'000U, options.shard_count)
      ->excludes(shard_size);
  app.add_flag("--overwrite", options.overwrite, "Replace what OUT holds of this split");
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
      fmt::format("{:.0f}% {}/{} {:.0f} {}/s {:.0f} MB/s ETA {}", share * 100, human::count(done),
                  human::count(planned), rate, noun,
                  static_cast<double>(progress.bytes_written) / seconds / 1e6, human::clock(rest));
  if (skips) text += fmt::format(" {} skipped", human::count(progress.samples_skipped));
  return {share, std::move(text), done, planned, noun};
}

void print_row(std::string_view title, const std::string& text) {
  if (!text.empty()) print("{:<9} {}\n", title, text);
}

void print_disk(const JobEstimate& preview) {
  const std::string copies =
      preview.bytes_unpacked == 0
          ? ""
          : fmt::format(" ({} to unpack the source)", size_text(preview.bytes_unpacked));
  print_row("disk", fmt::format("{} needed{}, {} free{}", size_text(preview.bytes_needed), copies,
                                size_text(preview.bytes_free),
                                preview.bytes_needed > preview.bytes_free ? ": NOT ENOUGH" : ""));
}

void print_done(const JobReport& report, const std::string& noun, double seconds) {
  if (report.shards_resumed != 0 && report.status != JobStatus::kAlreadyComplete) {
    print_row("resumed", human::count(report.shards_resumed, "shard") + " of an earlier run");
  }
  if (report.damaged != 0) {
    print_row("damaged",
              human::count(report.damaged, "image") + " with damage that decoders tolerate");
  }
  if (report.converted != 0) {
    print_row("time", fmt::format("{}, {:.0f} {}/s", human::clock(seconds),
                                  static_cast<double>(report.converted) / seconds, noun));
  }
}

std::string shards_text(std::uint64_t count, Format format) {
  return human::count(count, fmt::format("{} shard", name(format)));
}

void print_if_complete_already(const JobReport& report, const std::filesystem::path& out) {
  if (report.status != JobStatus::kAlreadyComplete) return;
  print("{}: complete already, nothing to do: {}\n", out.string(),
        comparison_text(report.compared));
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
  return report.shards_planned == 0  // it ended while the source was unpacked
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
