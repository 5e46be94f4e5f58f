// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/job_command.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/convert/pack.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

struct PackCommand : JobCommand {
  PackOptions options;
};

Json estimate_json(const PackEstimate& estimate) {
  return {{"samples", estimate.samples},
          {"classes", estimate.classes.size()},
          {"labels", labels_json(estimate)},
          {"source_bytes", estimate.source_bytes},
          {"shards", estimate.shards},
          {"dropped_columns", estimate.dropped_columns},
          {"bytes_needed", estimate.bytes_needed},
          {"bytes_unpacked", estimate.bytes_unpacked},
          {"bytes_free", estimate.bytes_free}};
}

void print_estimate(const PackEstimate& estimate, bool json) {
  if (json) return print_json(estimate_json(estimate));
  print_row("source", fmt::format("{}, {}, {}", human::count(estimate.samples, "encoded image"),
                                  labels_text(estimate), size_text(estimate.source_bytes)));
  print_dropped(estimate, "packed shards have only images, labels and keys");
  print_row("shards", fmt::format("{} of {} to {} images", human::count(estimate.shards),
                                  human::count(estimate.splits.front().smallest_shard_samples),
                                  human::count(estimate.splits.front().largest_shard_samples)));
  print_disk(estimate);
}

void print_report(const PackReport& report, const PackOptions& options, double seconds, bool json) {
  const bool is_complete = report.status != JobStatus::kInterrupted;
  if (json) {
    Json summary = {{"status", status_name(report.status)},
                    {"out", options.out.string()},
                    {"split", options.split},
                    {"samples", report.samples},
                    {"skipped", report.skipped_count}};
    summary.update(report_json(report, seconds));
    summary["plan"] = estimate_json(report.estimate);
    print_json(summary);
  } else if (is_complete) {
    print_if_complete_already(report, options.out);
    print_row(
        options.split,
        fmt::format("{} in {}, {}", human::count(report.samples, "encoded image"),
                    shards_text(report.shards_done, options.format), labels_text(report.estimate)));
    print_dropped(report.estimate, "packed shards have only images, labels and keys");
    print_row("bytes", size_text(report.bytes));
    print_done(report, "images", seconds);
  }
  std::fflush(stdout);  // before what follows on stderr
  if (report.skipped.empty()) return;
  say("precache: {} skipped; the first is '{}': {}\n", human::count(report.skipped_count, "image"),
      report.skipped.front().path, report.skipped.front().reason);
  if (is_complete) say("  All are listed in '{}'.\n", (options.out / "skipped.tsv").string());
}

ExitCode run_pack(const PackCommand& command) {
  const PackOptions& options = command.options;
  if (command.dry_run) {
    print_estimate(with_threads(command.jobs, [&] { return estimate_pack(options); }),
                   command.json);
    return ExitCode::kDone;
  }
  const auto [report, seconds] = run_job(
      command, "images", true, [&](JobProgress& progress) { return pack(options, progress); });
  print_report(report, options, seconds, command.json);
  say_interrupted(report, options.overwrite);
  return ExitCode::kDone;
}

}  // namespace

void add_pack(CLI::App& app, Action& action) {
  auto command = std::make_shared<PackCommand>();
  PackOptions& options = command->options;
  CLI::App* pack_app =
      app.add_subcommand("pack", "Pack JPEG and PNG files into shards without decoding them");
  add_source_options(*pack_app, options);
  add_shard_options(*pack_app, options);
  cli::add_integer(*pack_app, "--seed", "N", "Shuffle with this seed; without it, keep the order",
                   std::uint64_t{0}, UINT64_MAX, options.seed);
  cli::add_text(*pack_app, "--image-name", "NAME [jpg or png]",
                "In a tar: use this extension for all images", options.image_name);
  cli::begin_group(*pack_app, "Run");
  add_job_options(*pack_app, *command);
  pack_app->footer(
      "Examples:\n"
      "  precache pack images packed\n"
      "  precache pack images packed --format tfrecord --seed 0\n"
      "  precache pack images packed --shard-size 1GB --dry-run\n"
      "\n"
      "If a job is interrupted or killed, run the same command again to resume it.\n"
      "Exit status: 0 done, 2 wrong usage, 3 system error, 4 corrupt data, 5 unsupported.");
  pack_app->callback([&action, command] { action = [command] { return run_pack(*command); }; });
}

}  // namespace precache
