// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "cli/add_option.hpp"
#include "cli/build_report.hpp"
#include "cli/commands.hpp"
#include "cli/human.hpp"
#include "cli/option_values.hpp"
#include "cli/progress_display.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/workers.hpp"
#include "formats/bytes/size_text.hpp"
#include "precache/convert/build.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using cli::add;
using cli::add_choice;
using option_values::integer;

/// The command line as it was given. Options that others bear on are read at the end.
struct BuildCommand {
  BuildOptions options;
  std::optional<std::string> size;
  std::optional<std::string> normalize;
  std::optional<Filter> filter;
  std::optional<std::uint32_t> resize;
  std::optional<bool> apply_exif;
  bool imagenet_preset = false;
  unsigned jobs = usable_threads();
  bool dry_run = false;
  bool quiet = false;
  bool json = false;
};

void read_dependent_options(BuildCommand& command) {
  Recipe& recipe = command.options.recipe;
  if (command.imagenet_preset) {
    if (recipe.fit == Fit::kCrop) recipe.resize = 256;
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

ProgressLine describe(const JobProgress& progress, double seconds) {
  const std::uint64_t planned = progress.samples_planned;
  const std::uint64_t done = progress.samples_done;
  if (planned == 0 && progress.bytes_unpacked != 0) {
    return {std::nullopt, fmt::format("unpacking ... {}", size_text(progress.bytes_unpacked)),
            progress.bytes_unpacked, 0, "bytes"};
  }
  if (planned == 0) return {std::nullopt, "listing images ..."};
  const double rate = static_cast<double>(done) / seconds;
  const double share = static_cast<double>(done) / static_cast<double>(planned);
  const double rest = rate > 0 ? static_cast<double>(planned - done) / rate : 0;
  return {share,
          fmt::format("{:.0f}% {}/{} {:.0f} images/s {:.0f} MB/s ETA {} {} skipped", share * 100,
                      human::count(done), human::count(planned), rate,
                      static_cast<double>(progress.bytes_written) / seconds / 1e6,
                      human::clock(rest), human::count(progress.samples_skipped)),
          done, planned, "images"};
}

ExitCode run_build(BuildCommand& command) {
  command.options.helper = kOwnProgram;
  const BuildOptions& options = command.options;
  Workers workers(command.jobs);
  if (command.dry_run) {
    const BuildEstimate preview = workers.execute([&] { return estimate_build(options); });
    print_preview(preview, options, command.json);
    return ExitCode::kDone;
  }
  JobProgress progress;
  const auto begin = std::chrono::steady_clock::now();
  BuildReport report;
  {
    const StopOnSignal stop(progress.stop);
    const ProgressDisplay display(command.quiet,
                                  [&](double seconds) { return describe(progress, seconds); });
    report = workers.execute([&] { return build(options, progress); });
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print_report(report, options, seconds, command.json);
  const ExitCode code = conclude(report, options);
  if (report.status == JobStatus::kInterrupted) StopOnSignal::raise_again();
  return code;
}

void add_image_options(CLI::App& app, BuildCommand& command) {
  Recipe& recipe = command.options.recipe;
  add(app, "--size", "N|HxW [224]", "Height and width of the tensors",
      [&](const std::string& text) { command.size = text; });
  add_choice(app, "--fit", {"crop", "stretch", "pad"}, "crop",
             "crop: shorter side to --resize, then centre crop; stretch: exactly HxW; pad: the "
             "longer side fits, the rest is --pad-value",
             [&](std::size_t i) { recipe.fit = static_cast<Fit>(i); });
  add(app, "--resize", "N [the size]", "Shorter side before the crop",
      [&](const std::string& text) {
        command.resize = static_cast<std::uint32_t>(integer("--resize", text, 1, 16384));
      });
  add_choice(app, "--filter", {"nearest", "box", "bilinear", "bicubic", "lanczos"}, "bilinear",
             "How to resize, as Pillow defines it",
             [&](std::size_t i) { command.filter = static_cast<Filter>(i); });
  add(app, "--pad-value", "0..255 [0]", "Value of the border that --fit pad adds",
      [&](const std::string& text) {
        recipe.pad_value = static_cast<std::uint8_t>(integer("--pad-value", text, 0, 255));
      });
  add_choice(app, "--dtype", {"uint8", "float16", "bfloat16", "float32"}, "uint8",
             "uint8 takes a quarter of the bytes of float32: normalise while reading",
             [&](std::size_t i) { recipe.dtype = static_cast<DType>(i); });
  add(app, "--normalize", "imagenet|MEAN/STD", "(x/255 - mean)/std, only for float dtypes",
      [&](const std::string& text) { command.normalize = text; });
  add_choice(app, "--layout", {"chw", "hwc"}, "chw", "Order of the tensor's axes",
             [&](std::size_t i) { recipe.layout = static_cast<Layout>(i); });
  add_choice(app, "--color", {"rgb", "gray"}, "rgb", "Channels",
             [&](std::size_t i) { recipe.color = static_cast<Color>(i); });
  add_choice(app, "--exif", {"apply", "ignore"}, "apply",
             "What to do with the orientation a camera noted",
             [&](std::size_t i) { command.apply_exif = i == 0; });
  add_choice(app, "--preset", {"imagenet"}, "",
             "--resize 256 --size 224 --filter bilinear --exif ignore: torchvision's evaluation",
             [&](std::size_t) { command.imagenet_preset = true; });
}

void add_dataset_options(CLI::App& app, BuildCommand& command) {
  BuildOptions& options = command.options;
  const std::vector<std::string> formats{"tar", "tfrecord", "hdf5"};
  add_choice(app, "--format", formats, "tar", "File format of the shards",
             [&options, formats](std::size_t i) { options.format = formats[i]; });
  add(app, "--split", "NAME [train]", "Name of the split; a further one may join a finished OUT",
      [&](const std::string& text) { options.split = text; });
  add(app, "--labels", "folder|none|FILE.csv [folder]",
      "Class: the first folder below SOURCE, or what a shard says; none (-1); or path,label rows",
      [&](const std::string& text) {
        options.labels = option_values::not_empty("--labels", text);
      });
  add(app, "--image-key", "NAME",
      "In shards: the TFRecord feature, HDF5 dataset or tar extension of images [guessed]",
      [&](const std::string& text) {
        options.image_key = option_values::not_empty("--image-key", text);
      });
  add(app, "--label-key", "NAME", "The same of labels; json.FIELD in a tar is a field of .json",
      [&](const std::string& text) {
        options.label_key = option_values::not_empty("--label-key", text);
      });
  add(app, "--classes", "FILE|dataset.json",
      "Fixes class names and their numbers; an unknown class is an error",
      [&](const std::string& text) {
        options.classes = option_values::not_empty("--classes", text);
      });
  add_choice(app, "--keys", {"full", "short"}, "full",
             "short: keys of more than 96 bytes are cut and end in a checksum, so that every tar "
             "reader sees the whole key",
             [&](std::size_t i) { options.short_keys = i == 1; });
  auto* shard_size =
      add(app, "--shard-size", "BYTES [512MiB]", "About how large a shard is",
          [&](const std::string& text) { options.shard_size_bytes = option_values::bytes(text); });
  add(app, "--shards", "N", "How many shards", [&](const std::string& text) {
    options.shards = integer("--shards", text, 1, 1'000'000);
  })->excludes(shard_size);
  auto* seed =
      add(app, "--seed", "N [0]", "Of the shuffle before sharding",
          [&](const std::string& text) { options.seed = integer("--seed", text, 0, UINT64_MAX); });
  app.add_flag_callback(
         "--no-shuffle", [&] { options.shuffle = false; }, "Keep the order of the paths")
      ->excludes(seed);
}

void add_job_options(CLI::App& app, BuildCommand& command) {
  BuildOptions& options = command.options;
  add(app, "--jobs", fmt::format("N [{}]", command.jobs), "Worker threads",
      [&](const std::string& text) {
        command.jobs = static_cast<unsigned>(integer("--jobs", text, 1, 1024));
      });
  add_choice(app, "--on-error", {"skip", "fail"}, "skip",
             "What a bad image does; skipped ones are listed in OUT/skipped.tsv",
             [&](std::size_t i) { options.fail_on_bad = i == 1; });
  add(app, "--max-bad", "P% [1%]", "More bad images than this fail the build",
      [&](const std::string& text) { options.max_bad_percent = option_values::percent(text); });
  add(app, "--max-pixels", fmt::format("N [{}]", options.max_pixels),
      "Larger images are bad (decompression bombs)", [&](const std::string& text) {
        options.max_pixels = integer("--max-pixels", text, 1, UINT64_MAX);
      });
  add(app, "--index", "KIND[,KIND...]",
      "For other readers: dali or wids of tar, dali or tfds of tfrecord, vds of hdf5",
      [&](const std::string& text) { options.indexes = parse_index_kinds(text); });
  auto* part = add(app, "--part", "I/N", "Only every N-th shard: for many machines on one OUT",
                   [&](const std::string& text) {
                     std::tie(options.part_index, options.part_count) = option_values::part(text);
                   });
  auto* finish =
      app.add_flag("--finish", options.finish, "Write the manifest when all parts are there")
          ->excludes(part);
  app.add_flag("--overwrite", options.overwrite, "Replace what OUT holds of this split")
      ->excludes(finish);
  app.add_flag("--dry-run", command.dry_run, "Print the plan, write nothing");
  app.add_flag("--quiet", command.quiet, "No progress");
  app.add_flag("--json", command.json, "Summary as JSON on stdout");
}

}  // namespace

void add_build(CLI::App& app, Action& action) {
  auto command = std::make_shared<BuildCommand>();
  CLI::App* build_app = app.add_subcommand("build", "Decode and resize images into shards");
  build_app->get_formatter()->column_width(34);
  build_app
      ->add_option(
          "SOURCE", command->options.source,
          "Folder of images, one subfolder per class; or shards of encoded images: tar, "
          "TFRecord, HDF5, a pattern of them ('train-{000..127}.tar'), or - for one on "
          "standard input. What is compressed by gzip or zlib, or comes through a pipe, is "
          "unpacked into OUT for the time of the build")
      ->required()
      ->option_text(" ");
  build_app->add_option("OUT", command->options.out, "Folder for the dataset; made if missing")
      ->required()
      ->option_text(" ");
  add_image_options(*build_app, *command);
  add_dataset_options(*build_app, *command);
  add_job_options(*build_app, *command);
  build_app->footer(
      "Interrupted or killed, the same command goes on where it stopped.\n"
      "Exit status: 0 done, 1 too many bad images, 2 usage, 3 system, 4 corrupt data, 5 "
      "unsupported.");
  build_app->callback([&action, command] {
    action = [command] {
      read_dependent_options(*command);
      return run_build(*command);
    };
  });
}

}  // namespace precache
