// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/convert_report.hpp"
#include "cli/human.hpp"
#include "cli/option_values.hpp"
#include "cli/progress_display.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/workers.hpp"
#include "formats/bytes/size_text.hpp"
#include "precache/convert/pack.hpp"
#include "precache/convert/reformat.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/usable_threads.hpp"

namespace precache {
namespace {

using cli::add;
using cli::add_choice;
using option_values::integer;

struct ConvertCommand {
  ReformatOptions options;
  bool keep_encoded = false;
  std::optional<std::string> labels;
  std::optional<std::string> image_key;
  std::optional<std::string> label_key;
  std::optional<std::string> classes;
  std::optional<std::string> image_name;
  unsigned jobs = usable_threads();
  bool dry_run = false;
  bool quiet = false;
  bool json = false;
};

ProgressLine describe(const JobProgress& progress, double seconds) {
  const std::uint64_t planned = progress.samples_planned;
  const std::uint64_t done = progress.samples_done;
  if (planned == 0 && progress.bytes_unpacked != 0) {
    return {std::nullopt, fmt::format("unpacking ... {}", size_text(progress.bytes_unpacked))};
  }
  if (planned == 0) return {std::nullopt, "looking at the shards ..."};
  const double rate = static_cast<double>(done) / seconds;
  const double share = static_cast<double>(done) / static_cast<double>(planned);
  const double rest = rate > 0 ? static_cast<double>(planned - done) / rate : 0;
  return {
      share,
      fmt::format("{:.0f}% {}/{} {:.0f} samples/s {:.0f} MB/s ETA {}", share * 100,
                  human::count(done), human::count(planned), rate,
                  static_cast<double>(progress.bytes_written) / seconds / 1e6, human::clock(rest)),
      done, planned, "samples"};
}

/// The same request, for images that stay encoded.
PackOptions repack_options(const ConvertCommand& command) {
  const ReformatOptions& options = command.options;
  if (options.dtype || options.layout || options.normalize) {
    throw InvalidArgument("--dtype, --layout and --normalize have no meaning with --keep-encoded",
                          "precache build makes tensors of images.");
  }
  PackOptions pack;
  pack.source = options.shards;
  pack.out = options.out;
  pack.format = options.format.value_or(pack.format);
  pack.split = options.split.value_or(pack.split);
  pack.labels = command.labels.value_or(pack.labels);
  pack.image_key = command.image_key.value_or("");
  pack.label_key = command.label_key.value_or("");
  pack.image_name = command.image_name.value_or("");
  pack.classes = command.classes.value_or("");
  pack.shard_size_bytes = options.shard_size_bytes.value_or(pack.shard_size_bytes);
  pack.shards = options.shards_per_split.value_or(0);
  pack.seed = options.seed;
  pack.overwrite = options.overwrite;
  pack.helper = kOwnProgram;
  return pack;
}

/// Does either kind of work, and reports it. `call` does it; `preview` says what it would do.
template <typename Options>
ExitCode run_job(const ConvertCommand& command, const Options& options, const auto& preview,
                 const auto& call) {
  Workers workers(command.jobs);
  if (command.dry_run) {
    print_preview(workers.execute([&] { return preview(options); }), command.json);
    return ExitCode::kDone;
  }
  JobProgress progress;
  const auto begin = std::chrono::steady_clock::now();
  decltype(call(options, progress)) report;
  {
    const StopOnSignal stop(progress.stop);
    const ProgressDisplay display(command.quiet,
                                  [&](double seconds) { return describe(progress, seconds); });
    report = workers.execute([&] { return call(options, progress); });
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print_report(report, options, seconds, command.json);
  if (report.status == JobStatus::kInterrupted) StopOnSignal::raise_again();
  return ExitCode::kDone;
}

ExitCode run_convert(const ConvertCommand& command) {
  if (command.keep_encoded) {
    return run_job(command, repack_options(command), estimate_pack, pack);
  }
  if (command.image_name) {
    throw InvalidArgument("--image-name applies only with --keep-encoded",
                          "Tensors are KEY.npy in every tar.");
  }
  if (command.classes || command.labels.value_or("none") != "none") {
    throw InvalidArgument(
        "--classes and --labels other than none have no meaning without --keep-encoded",
        "Tensor shards keep the labels and classes that they have.");
  }
  ReformatOptions options = command.options;
  options.image_key = command.image_key.value_or("");
  options.label_key = command.label_key.value_or("");
  options.without_labels = command.labels.has_value();
  options.helper = kOwnProgram;
  if (options.without_labels && !options.label_key.empty()) {
    throw InvalidArgument("--labels none and --label-key contradict each other");
  }
  return run_job(command, options, estimate_reformat, reformat);
}

void add_tensor_options(CLI::App& app, ReformatOptions& options) {
  const std::vector<std::string> formats{"tar", "tfrecord", "hdf5"};
  add_choice(app, "--format", formats, "", "File format of the shards; as it was",
             [&options, formats](std::size_t i) { options.format = formats[i]; });
  add_choice(app, "--dtype", {"uint8", "float16", "bfloat16", "float32"}, "",
             "Element type of the tensors; as it was",
             [&](std::size_t i) { options.dtype = static_cast<DType>(i); });
  add(app, "--normalize", "imagenet|MEAN/STD",
      "(x/255 - mean)/std, only for float dtypes and what is not normalised yet",
      [&](const std::string& text) {
        options.normalize = option_values::normalization(text, Color::kRgb);
      });
  add_choice(app, "--layout", {"chw", "hwc"}, "", "Order of the tensor's axes; as it was",
             [&](std::size_t i) { options.layout = static_cast<Layout>(i); });
}

void add_dataset_options(CLI::App& app, ReformatOptions& options) {
  add(app, "--split", "NAME [all]",
      "Only this split of a dataset. Of shards without a manifest: its name in OUT [train]",
      [&](const std::string& text) { options.split = option_values::not_empty("--split", text); });
  auto* shard_size =
      add(app, "--shard-size", "BYTES", "About how large a shard is; as many samples as it had",
          [&](const std::string& text) { options.shard_size_bytes = option_values::bytes(text); });
  add(app, "--shards", "N", "How many shards a split has; as many as it had",
      [&](const std::string& text) {
        options.shards_per_split = integer("--shards", text, 1, 1'000'000);
      })
      ->excludes(shard_size);
  auto* seed =
      add(app, "--seed", "N", "Shuffle with it; without it the order stays",
          [&](const std::string& text) { options.seed = integer("--seed", text, 0, UINT64_MAX); });
  app.add_flag_callback(
         "--no-shuffle", [] {}, "Keep the order, which is what happens without --seed")
      ->excludes(seed);
}

void add_encoded_options(CLI::App& app, ConvertCommand& command) {
  app.add_flag(
      "--keep-encoded", command.keep_encoded,
      "Pack JPEG and PNG files as they are: SHARDS is what build takes as SOURCE, a folder "
      "of images, shards of them, or -; shards of 512MiB [tar]");
  add(app, "--labels", "folder|none|FILE.csv [folder]",
      "As build has it; without --keep-encoded only none, for shards without a manifest",
      [&](const std::string& text) {
        command.labels = option_values::not_empty("--labels", text);
      });
  add(app, "--image-key", "NAME",
      "What of shards without a manifest is the image, as build has it; found by its usual names",
      [&](const std::string& text) {
        command.image_key = option_values::not_empty("--image-key", text);
      });
  add(app, "--label-key", "NAME", "The same of the label", [&](const std::string& text) {
    command.label_key = option_values::not_empty("--label-key", text);
  });
  add(app, "--image-name", "NAME [jpg or png]",
      "With --keep-encoded and tar: one extension for all images, whatever they are",
      [&](const std::string& text) {
        command.image_name = option_values::not_empty("--image-name", text);
      });
  add(app, "--classes", "FILE|dataset.json", "With --keep-encoded: class names and their numbers",
      [&](const std::string& text) {
        command.classes = option_values::not_empty("--classes", text);
      });
}

void add_job_options(CLI::App& app, ConvertCommand& command) {
  add(app, "--jobs", fmt::format("N [{}]", command.jobs), "Worker threads",
      [&](const std::string& text) {
        command.jobs = static_cast<unsigned>(integer("--jobs", text, 1, 1024));
      });
  app.add_flag("--overwrite", command.options.overwrite, "Replace what OUT holds of these splits");
  app.add_flag("--dry-run", command.dry_run, "Print the plan, write nothing");
  app.add_flag("--quiet", command.quiet, "No progress");
  app.add_flag("--json", command.json, "Summary as JSON on stdout");
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App* convert_app = app.add_subcommand(
      "convert", "Write shards anew in another format, precision, layout or size");
  convert_app->get_formatter()->column_width(34);
  convert_app
      ->add_option("SHARDS", command->options.shards,
                   "Dataset folder, shard, or pattern (quoted) of shards of any origin")
      ->required()
      ->option_text(" ");
  convert_app->add_option("OUT", command->options.out, "Folder for the dataset; made if missing")
      ->required()
      ->option_text(" ");
  add_tensor_options(*convert_app, command->options);
  add_dataset_options(*convert_app, command->options);
  add_encoded_options(*convert_app, *command);
  add_job_options(*convert_app, *command);
  convert_app->footer(
      "What is not asked for stays as it is: order, samples in each shard, classes, bytes of\n"
      "tensors. Interrupted or killed, the same command goes on where it stopped.\n"
      "Exit status: 0 done, 2 usage, 3 system, 4 corrupt data, 5 unsupported.");
  convert_app->callback(
      [&action, command] { action = [command] { return run_convert(*command); }; });
}

}  // namespace precache
