// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/job_command.hpp"
#include "cli/option_values.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/convert/reformat.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;
using cli::add;
using cli::add_choice;
using cli::add_enum;
using cli::add_integer;
using cli::add_text;

struct ConvertCommand : JobCommand {
  ReformatOptions options;
};

Json spec_json(Format format, const TensorSpec& spec) {
  return {{"format", name(format)},
          {"dtype", name(spec.dtype)},
          {"shape", spec.shape()},
          {"layout", name(spec.layout)}};
}

Json estimate_json(const ReformatEstimate& estimate) {
  Json splits = Json::object();
  for (const SplitEstimate& split : estimate.splits) {
    splits[split.name] = {{"samples", split.samples}, {"shards", split.shards}};
  }
  Json source = spec_json(estimate.source_format, estimate.source_spec);
  source["shards"] = estimate.source_shards;
  source["bytes"] = estimate.source_bytes;
  Json json = {{"source", std::move(source)}};
  json.update(spec_json(estimate.format, estimate.spec));
  json.update({{"samples", estimate.samples},
               {"classes", estimate.classes.size()},
               {"labels", labels_json(estimate)},
               {"splits", std::move(splits)},
               {"shards", estimate.shards},
               {"tensors_stay", estimate.tensors_stay},
               {"dropped_columns", estimate.dropped_columns},
               {"bytes_needed", estimate.bytes_needed},
               {"bytes_free", estimate.bytes_free}});
  return json;
}

void print_tensors(const ReformatEstimate& estimate) {
  print_dropped(estimate, "without dataset.json, only images, labels and keys are kept");
  print_row("from",
            fmt::format("{}, {}", name(estimate.source_format), estimate.source_spec.text()));
  print_row("to", fmt::format("{}, {}{}", name(estimate.format), estimate.spec.text(),
                              estimate.tensors_stay ? ", tensors copied unchanged" : ""));
}

std::string split_text(const ReformatEstimate& estimate, const SplitEstimate& split) {
  return fmt::format("{} in {}", human::count(split.samples, "sample"),
                     shards_text(split.shards, estimate.format));
}

void print_estimate(const ReformatEstimate& estimate, bool json) {
  if (json) return print_json(estimate_json(estimate));
  print_row("source", fmt::format("{} in {}, {}, {}", human::count(estimate.samples, "sample"),
                                  human::count(estimate.source_shards, "shard"),
                                  labels_text(estimate), size_text(estimate.source_bytes)));
  print_tensors(estimate);
  for (const SplitEstimate& split : estimate.splits) {
    print_row(split.name, fmt::format("{} of {} to {}", split_text(estimate, split),
                                      human::count(split.smallest_shard_samples),
                                      human::count(split.largest_shard_samples)));
  }
  print_disk(estimate);
}

void print_report(const ReformatReport& report, const ReformatOptions& options, double seconds,
                  bool json) {
  const ReformatEstimate& estimate = report.estimate;
  if (json) {
    Json summary = {{"status", status_name(report.status)}, {"out", options.out.string()}};
    summary.update(report_json(report, seconds));
    summary["plan"] = estimate_json(estimate);
    print_json(summary);
  } else if (report.status != JobStatus::kInterrupted) {
    print_if_complete_already(report, options.out);
    for (const SplitEstimate& split : estimate.splits) {
      print_row(split.name, split_text(estimate, split));
    }
    print_tensors(estimate);
    print_row("bytes", size_text(report.bytes));
    print_done(report, "samples", seconds);
  }
  std::fflush(stdout);  // before what follows on stderr
}

ExitCode run_convert(const ConvertCommand& command) {
  ReformatOptions options = command.options;
  options.helper = kOwnProgram;
  if (options.without_labels && !options.label_key.empty()) {
    throw InvalidArgument("`label_key` cannot be combined with `labels` none");
  }
  if (command.dry_run) {
    print_estimate(with_threads(command.jobs, [&] { return estimate_reformat(options); }),
                   command.json);
    return ExitCode::kDone;
  }
  const auto [report, seconds] = run_job(command, "samples", false, [&](JobProgress& progress) {
    return reformat(options, progress);
  });
  print_report(report, options, seconds, command.json);
  say_interrupted(report, options.overwrite);
  return ExitCode::kDone;
}

void add_input_options(CLI::App& app, ReformatOptions& options) {
  cli::begin_group(app, "Input");
  cli::add_argument(app, "SHARDS",
                    "A dataset folder, a shard, or a quoted pattern of shards, written by precache "
                    "or by other tools",
                    options.shards);
  add_text(app, "--split", "NAME [all]",
           "Only this split of a dataset. For shards without a manifest: the name of the split in "
           "OUT, train if not given",
           options.split);
  add_choice(app, "--labels", {"none"}, "", "For shards without a manifest: write no labels",
             [&](const std::string&) { options.without_labels = true; });
  add_text(app, "--image-key", "NAME [guessed]",
           "For shards without a manifest: which feature, dataset or extension is the image",
           options.image_key);
  add_text(app, "--label-key", "NAME [guessed]",
           "For shards without a manifest: the same for the label", options.label_key);
}

void add_pixel_options(CLI::App& app, ReformatOptions& options) {
  cli::begin_group(app, "Pixels");
  add_enum(app, "--dtype", kAllDTypes, "same as SHARDS", "Element type", options.dtype);
  add(app, "--normalize", "imagenet|MEAN/STD",
      "Store (x/255 - mean)/std; needs a float --dtype and input that is not normalised yet",
      [&](const std::string& text) {
        options.normalize = option_values::normalization(text, Color::kRgb);
      });
  add_enum(app, "--layout", kAllLayouts, "same as SHARDS", "Order of the axes of a tensor",
           options.layout);
}

void add_output_options(CLI::App& app, ReformatOptions& options) {
  cli::begin_group(app, "Output");
  add_out(app, options.out);
  add_enum(app, "--format", kAllFormats, "same as SHARDS", "File format of the shards",
           options.format);
  auto* shard_size =
      add(app, "--shard-size", "BYTES [as many samples per shard]", "Approximate size of a shard",
          [&](const std::string& text) { options.shard_size_bytes = option_values::bytes(text); });
  add_integer(app, "--shards", "N [as many as SHARDS]", "Number of shards per split", 1U,
              1'000'000U, options.shard_count)
      ->excludes(shard_size);
  add_integer(app, "--seed", "N", "Shuffle with this seed; without it, keep the order",
              std::uint64_t{0}, UINT64_MAX, options.seed);
  app.add_flag("--overwrite", options.overwrite, "Replace these splits if OUT already has them");
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App* convert_app = app.add_subcommand(
      "convert", "Rewrite tensor shards in another format, dtype, layout or shard size");
  add_input_options(*convert_app, command->options);
  add_pixel_options(*convert_app, command->options);
  add_output_options(*convert_app, command->options);
  cli::begin_group(*convert_app, "Run");
  add_job_options(*convert_app, *command);
  convert_app->footer(
      "Examples:\n"
      "  precache convert shards shards-tfrecord --format tfrecord\n"
      "  precache convert shards shards-half --dtype float16 --normalize imagenet\n"
      "  precache convert shards small-shards --shard-size 64MiB --dry-run\n"
      "\n"
      "What you do not ask for stays the same: order, samples per shard, classes and tensor bytes. "
      "If a job is interrupted or killed, run the same command again to resume it.\n"
      "Exit status: 0 done, 2 wrong usage, 3 system error, 4 corrupt data, 5 unsupported.");
  convert_app->callback(
      [&action, command] { action = [command] { return run_convert(*command); }; });
}

}  // namespace precache
