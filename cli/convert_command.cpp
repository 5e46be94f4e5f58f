// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/job_command.hpp"
#include "cli/labels_text.hpp"
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

Json preview_json(const ReformatEstimate& preview) {
  Json splits = Json::object();
  for (const SplitEstimate& split : preview.splits) {
    splits[split.name] = {{"samples", split.samples}, {"shards", split.shards}};
  }
  Json source = spec_json(preview.source_format, preview.source_spec);
  source["shards"] = preview.source_shards;
  source["bytes"] = preview.source_bytes;
  Json json = {{"source", std::move(source)}};
  json.update(spec_json(preview.format, preview.spec));
  json.update({{"samples", preview.samples},
               {"classes", preview.classes.size()},
               {"labels", labels_json(preview.labels)},
               {"splits", std::move(splits)},
               {"shards", preview.shards},
               {"tensors_stay", preview.tensors_stay},
               {"bytes_needed", preview.bytes_needed},
               {"bytes_free", preview.bytes_free}});
  return json;
}

void print_tensors(const ReformatEstimate& preview) {
  print_row("from", fmt::format("{}, {}", name(preview.source_format), preview.source_spec.text()));
  print_row("to", fmt::format("{}, {}{}", name(preview.format), preview.spec.text(),
                              preview.tensors_stay ? ", tensors copied as they are" : ""));
}

std::string split_text(const ReformatEstimate& preview, const SplitEstimate& split) {
  return fmt::format("{} in {}", human::count(split.samples, "sample"),
                     shards_text(split.shards, preview.format));
}

void print_preview(const ReformatEstimate& preview, bool json) {
  if (json) return print_json(preview_json(preview));
  print_row("source", fmt::format("{} in {}, {}, {}", human::count(preview.samples, "sample"),
                                  human::count(preview.source_shards, "shard"),
                                  labels_text(preview.classes.size(), preview.labels),
                                  size_text(preview.source_bytes)));
  print_tensors(preview);
  for (const SplitEstimate& split : preview.splits) {
    print_row(split.name, fmt::format("{} of {} to {}", split_text(preview, split),
                                      human::count(split.smallest_shard_samples),
                                      human::count(split.largest_shard_samples)));
  }
  print_disk(preview);
}

void print_report(const ReformatReport& report, const ReformatOptions& options, double seconds,
                  bool json) {
  const ReformatEstimate& preview = report.preview;
  if (json) {
    Json summary = {{"status", status_name(report.status)}, {"out", options.out.string()}};
    summary.update(report_json(report, seconds));
    summary["plan"] = preview_json(preview);
    print_json(summary);
  } else if (report.status != JobStatus::kInterrupted) {
    print_if_complete_already(report, options.out);
    for (const SplitEstimate& split : preview.splits) {
      print_row(split.name, split_text(preview, split));
    }
    print_tensors(preview);
    print_row("bytes", size_text(report.bytes));
    print_done(report, "samples", seconds);
  }
  std::fflush(stdout);  // before what follows on stderr
}

ExitCode run_convert(const ConvertCommand& command) {
  ReformatOptions options = command.options;
  options.helper = kOwnProgram;
  if (options.without_labels && !options.label_key.empty()) {
    throw InvalidArgument("`labels` none and `label_key` contradict each other");
  }
  if (command.dry_run) {
    Workers workers(command.jobs);
    print_preview(workers.execute([&] { return estimate_reformat(options); }), command.json);
    return ExitCode::kDone;
  }
  const auto [report, seconds] = run_job(command, "samples", false, [&](JobProgress& progress) {
    return reformat(options, progress);
  });
  print_report(report, options, seconds, command.json);
  say_interrupted(report, options.overwrite);
  return ExitCode::kDone;
}

void add_tensor_options(CLI::App& app, ReformatOptions& options) {
  add_enum(app, "--format", kAllFormats, "", "File format of the shards; as it was",
           options.format);
  add_enum(app, "--dtype", kAllDTypes, "", "Element type of the tensors; as it was", options.dtype);
  add(app, "--normalize", "imagenet|MEAN/STD",
      "(x/255 - mean)/std, only for float dtypes and what is not normalised yet",
      [&](const std::string& text) {
        options.normalize = option_values::normalization(text, Color::kRgb);
      });
  add_enum(app, "--layout", kAllLayouts, "", "Order of the tensor's axes; as it was",
           options.layout);
}

void add_dataset_options(CLI::App& app, ReformatOptions& options) {
  add_text(app, "--split", "NAME [all]",
           "Only this split of a dataset. Of shards without a manifest: its name in OUT [train]",
           options.split);
  auto* shard_size =
      add(app, "--shard-size", "BYTES", "About how large a shard is; as many samples as it had",
          [&](const std::string& text) { options.shard_size_bytes = option_values::bytes(text); });
  add_integer(app, "--shards", "N", "How many shards a split has; as many as it had", 1U,
              1'000'000U, options.shard_count)
      ->excludes(shard_size);
  add_integer(app, "--seed", "N", "Shuffle with it; without it the order stays", std::uint64_t{0},
              UINT64_MAX, options.seed);
  add_choice(app, "--labels", {"none"}, "", "Leaves out the labels of shards without a manifest",
             [&](const std::string&) { options.without_labels = true; });
  add_text(app, "--image-key", "NAME",
           "What of shards without a manifest is the image; found by its usual names",
           options.image_key);
  add_text(app, "--label-key", "NAME", "The same of the label", options.label_key);
  app.add_flag("--overwrite", options.overwrite, "Replace what OUT holds of these splits");
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App* convert_app = app.add_subcommand(
      "convert", "Write shards of tensors again in another format, precision, layout or size");
  convert_app->get_formatter()->column_width(34);
  convert_app
      ->add_option("SHARDS", command->options.shards,
                   "Dataset folder, shard, or pattern (quoted) of shards of any origin")
      ->required()
      ->option_text(" ");
  add_out(*convert_app, command->options.out);
  add_tensor_options(*convert_app, command->options);
  add_dataset_options(*convert_app, command->options);
  add_job_options(*convert_app, *command);
  convert_app->footer(
      "What is not asked for stays as it is: order, samples in each shard, classes, bytes of\n"
      "tensors. Interrupted or killed, the same command continues where it stopped.\n"
      "Exit status: 0 done, 2 usage, 3 system, 4 corrupt data, 5 unsupported.");
  convert_app->callback(
      [&action, command] { action = [command] { return run_convert(*command); }; });
}

}  // namespace precache
