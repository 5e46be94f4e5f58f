// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "cli/add_option.hpp"
#include "cli/build_report.hpp"
#include "cli/commands.hpp"
#include "cli/job_command.hpp"
#include "cli/option_values.hpp"
#include "cli/part_of_environment.hpp"
#include "cli/state_report.hpp"
#include "formats/shard/limits.hpp"
#include "precache/convert/build.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using cli::add;
using cli::add_choice;
using cli::add_enum;
using cli::add_integer;
using cli::add_text;

/// The command line as given. Options that depend on others are read at the end.
struct BuildCommand : JobCommand {
  BuildOptions options;
  std::optional<std::string> size;
  std::optional<std::string> normalize;
  std::optional<Fit> fit;
  std::optional<Filter> filter;
  std::optional<std::uint32_t> resize;
  std::optional<bool> apply_exif;
  std::string preset;
  std::string prepare;  // "true" without a share
  bool takes_part_of_environment = false;
  bool status = false;
  bool watch = false;
  std::optional<double> watch_seconds;
};

/// Finds out which step of the build is asked for.
void read_step(BuildCommand& command) {
  BuildOptions& options = command.options;
  if (!command.prepare.empty()) {
    options.step = JobStep::kPrepare;
    if (command.prepare != "true") options.share = option_values::part(command.prepare, "prepare");
  }
  if (command.takes_part_of_environment) {
    const auto variable = [](const char* name) {
      const char* const value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
    options.share = cli::part_of_environment(variable, options.parts);
  }
  if (command.watch && !command.status) {
    throw InvalidArgument("`watch` needs `status`",
                          "`watch` repeats the output of `status`. Give both.");
  }
  if (command.watch_seconds && !command.watch) {
    throw InvalidArgument("`watch_seconds` needs `watch`",
                          "`watch_seconds` is the interval of `watch`. Give both.");
  }
}

void read_dependent_options(BuildCommand& command) {
  Recipe& recipe = command.options.recipe;
  if (command.fit) recipe.fit = *command.fit;
  if (!command.preset.empty()) {
    if (command.preset == "imagenet-train") {
      recipe.fit = command.fit.value_or(Fit::kStretch);
      recipe.height = recipe.width = 320;
    } else if (recipe.fit == Fit::kCrop) {
      recipe.resize = 256;
    }
    recipe.filter = Filter::kBilinear;
    recipe.apply_exif = false;
  }
  if (command.resize) recipe.resize = *command.resize;
  if (command.filter) recipe.filter = *command.filter;
  if (command.apply_exif) recipe.apply_exif = *command.apply_exif;
  if (command.size) std::tie(recipe.height, recipe.width) = option_values::size(*command.size);
  if (command.normalize) {
    recipe.normalize = option_values::normalization(*command.normalize, recipe.color);
  }
}

ExitCode run_build(const BuildCommand& command) {
  const BuildOptions& options = command.options;
  if (command.status) {
    const bool is_one_split = !options.val_fraction && options.split_file.empty();
    return report_state({.out = options.out,
                         .split = is_one_split ? options.split : "",
                         .parts = options.parts,
                         .watch = command.watch,
                         .watch_seconds = command.watch_seconds.value_or(2),
                         .json = command.json});
  }
  if (command.dry_run) {
    print_estimate(with_threads(command.jobs, [&] { return estimate_build(options); }), options,
                   command.json);
    return ExitCode::kDone;
  }
  const auto [report, seconds] = run_job(
      command, "images", true, [&](JobProgress& progress) { return build(options, progress); });
  print_report(report, options, seconds, command.json);
  return conclude(report, options);
}

void add_pixel_options(CLI::App& app, BuildCommand& command) {
  Recipe& recipe = command.options.recipe;
  cli::begin_group(app, "Pixels");
  add(app, "--size", "N|HxW [224]", "Height and width of the tensors",
      [&](const std::string& text) { command.size = text; });
  add_enum(app, "--fit", kAllFits, "crop",
           "crop: resize the shorter side to --resize, then crop the centre; stretch: resize to "
           "exactly HxW, and store the original size; pad: fit the longer side and fill the rest "
           "with --pad-value",
           command.fit);
  app.add_flag_callback(
      "--no-size-column", [&] { command.options.size_column = false; },
      "With --fit stretch: do not store the original height and width of images");
  add_integer(app, "--resize", "N [the size]", "Shorter side before the crop", 1U,
              kLargestTensorSide, command.resize);
  add_enum(app, "--filter", kAllFilters, "bilinear", "Resampling filter, as Pillow defines it",
           command.filter);
  add_integer(app, "--pad-value", "N [0]", "Value of the border that --fit pad adds",
              std::uint8_t{0}, std::uint8_t{255}, recipe.pad_value);
  add_enum(app, "--dtype", kAllDTypes, "uint8",
           "Element type; uint8 takes a quarter of the bytes of float32 and can be normalised "
           "while reading",
           recipe.dtype);
  add(app, "--normalize", "imagenet|MEAN/STD",
      "Store (x/255 - mean)/std; needs a float --dtype. One number each, or one per channel: "
      "0.5/0.5 or 0.485,0.456,0.406/0.229,0.224,0.225",
      [&](const std::string& text) { command.normalize = text; });
  add_enum(app, "--layout", kAllLayouts, "chw", "Order of the axes of a tensor", recipe.layout);
  add_enum(app, "--color", kAllColors, "rgb", "Channels", recipe.color);
  add_choice(app, "--exif", {"apply", "ignore"}, "apply",
             "Whether to rotate images as their EXIF orientation says",
             [&](const std::string& word) { command.apply_exif = word == "apply"; });
  add_choice(app, "--preset", {"imagenet", "imagenet-train"}, "",
             "imagenet: same as --resize 256 --size 224 --filter bilinear --exif ignore, which is "
             "torchvision's evaluation; imagenet-train: same as --fit stretch --size 320 --filter "
             "bilinear --exif ignore, for random crops of 224 while reading",
             [&](const std::string& word) { command.preset = word; });
}

void add_split_options(CLI::App& app, BuildOptions& options) {
  auto* fraction = add(
      app, "--val-fraction", "F",
      "Make two splits, train and val: val gets this share of each class, chosen by --seed. More "
      "than 0, less than 1",
      [&](const std::string& text) {
        options.val_fraction = option_values::decimal("--val-fraction", text, 0, 1);
      });
  add_text(app, "--split-file", "FILE.csv",
           "Make the splits that this file names: rows of path,split for all images; the path * "
           "stands for those that are not listed",
           options.split_file)
      ->excludes(fraction);
}

void add_order_options(CLI::App& app, BuildOptions& options) {
  add_choice(app, "--keys", {"full", "short"}, "full",
             "short: cut keys of more than 96 bytes and end them in a checksum, so that every tar "
             "reader sees the whole key",
             [&](const std::string& word) { options.short_keys = word == "short"; });
  auto* seed = add_integer(app, "--seed", "N [0]", "Seed of the shuffle before sharding",
                           std::uint64_t{0}, UINT64_MAX, options.seed);
  app.add_flag_callback(
         "--no-shuffle", [&] { options.shuffle = false; }, "Keep the order of the paths")
      ->excludes(seed);
  add(app, "--index", "KIND[,KIND...]",
      "Also write indexes for other readers: dali or wids for tar, dali or tfds for tfrecord, vds "
      "for hdf5",
      [&](const std::string& text) { options.indexes = parse_index_kinds(text); });
}

/// The steps of a build on several machines.
void add_step_options(CLI::App& app, BuildCommand& command) {
  BuildOptions& options = command.options;
  cli::begin_group(app, "Cluster");
  auto* prepare =
      app.add_flag("--prepare", command.prepare,
                   "Only list SOURCE and write the plan. With I/N: list share I of N; run "
                   "--prepare alone afterwards to merge the shares")
          ->option_text("[I/N]");
  auto* part =
      add(app, "--part", "I/N|auto",
          "Write shards I, I+N, I+2N ... (I from 0 to N-1), so that N machines can share OUT. "
          "auto: read I and N from the environment of Slurm, Kubernetes, AWS Batch, Cloud Run, "
          "PBS, LSF, Grid Engine or MPI",
          [&](const std::string& text) {
            options.step = JobStep::kPart;
            command.takes_part_of_environment = text == "auto";
            if (text != "auto") options.share = option_values::part(text, "part");
          });
  auto* finish = app.add_flag_callback(
      "--finish", [&] { options.step = JobStep::kFinish; },
      "Write the manifest after all parts are done");
  add_integer(app, "--parts", "N [as many as ran last]",
              "Number of parts: for --part auto, and to report missing parts", std::uint64_t{1},
              std::uint64_t{1'000'000}, options.parts);
  auto* status = app.add_flag("--status", command.status,
                              "Only print how many shards are done and which parts are missing");
  app.add_flag("--watch", command.watch, "With --status: repeat it until all parts are done");
  add(app, "--watch-seconds", "S [2]", "With --watch: seconds between two checks, 0.1 to 86400",
      [&](const std::string& text) {
        command.watch_seconds = option_values::decimal("--watch-seconds", text, 0.1, 86'400);
      });
  prepare->excludes(part)->excludes(finish)->excludes(status);
  part->excludes(finish)->excludes(status);
  finish->excludes(status)->excludes(app.get_option("--overwrite"));
}

void add_run_options(CLI::App& app, BuildOptions& options) {
  cli::begin_group(app, "Run");
  add_choice(app, "--on-error", {"skip", "fail"}, "skip",
             "What to do with a bad sample; skipped ones are listed in OUT/skipped.tsv",
             [&](const std::string& word) { options.fail_on_bad = word == "fail"; });
  add(app, "--max-bad", "P% [1%]", "Fail if more than this share of the samples is bad, 0 to 100",
      [&](const std::string& text) { options.max_bad_percent = option_values::percent(text); });
  add_integer(app, "--max-pixels", fmt::format("N [{}]", options.max_pixels),
              "Treat larger images as bad (decompression bombs)", std::uint64_t{1}, UINT64_MAX,
              options.max_pixels);
}

}  // namespace

void add_build(CLI::App& app, Action& action) {
  auto command = std::make_shared<BuildCommand>();
  CLI::App* build_app =
      app.add_subcommand("build", "Decode and resize images into shards of tensors");
  add_source_options(*build_app, command->options);
  cli::add_text(
      *build_app, "--mask", "FOLDER",
      "Also store a mask for each image, as column 'mask': the PNG file (gray of 1, 2, 4 "
      "or 8 bits, or a palette) with the same path below FOLDER, resized with the image by nearest",
      command->options.mask);
  add_pixel_options(*build_app, *command);
  add_shard_options(*build_app, command->options);
  add_split_options(*build_app, command->options);
  add_order_options(*build_app, command->options);
  add_step_options(*build_app, *command);
  add_run_options(*build_app, command->options);
  add_job_options(*build_app, *command);
  build_app->footer(
      "Examples:\n"
      "  precache build images shards --size 224\n"
      "  precache build images shards --preset imagenet --dry-run\n"
      "  precache build images shards --val-fraction 0.2\n"
      "  precache build photos shards --labels labels.csv --mask masks --format tfrecord\n"
      "\n"
      "If a build is interrupted or killed, run the same command again to resume it.\n"
      "Exit status: 0 done, 1 too many bad samples, 2 wrong usage, 3 system error, 4 corrupt data, "
      "5 unsupported. 3 is worth a retry.");
  build_app->callback([&action, command] {
    read_dependent_options(*command);
    action = [command] {
      read_step(*command);
      return run_build(*command);
    };
  });
}

}  // namespace precache
