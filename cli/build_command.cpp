// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>

#include "cli/build_report.hpp"
#include "cli/commands.hpp"
#include "cli/option_values.hpp"
#include "cli/progress_display.hpp"
#include "precache/convert/build.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// The command line as it was given.
struct BuildCommand {
  BuildOptions options;
  std::string size = "224";
  std::string normalize;
  std::string preset;
  std::string exif = "apply";
  std::string shard_size = "512MiB";
  std::string on_error = "skip";
  std::string max_bad = "1%";
  std::string part;
  std::string dtype = "uint8";
  std::string layout = "chw";
  unsigned jobs = usable_threads();
  unsigned pad_value = 0;
  bool no_shuffle = false;
  bool dry_run = false;
  bool quiet = false;
  bool json = false;
};

// --- interruption
// -----------------------------------------------------------------------------------------------------

std::atomic<bool>* stop_flag = nullptr;
volatile std::sig_atomic_t stop_signal = 0;

/// Lets SIGINT and SIGTERM end the build tidily; a second one ends the process at once.
class StopOnSignal {
 public:
  explicit StopOnSignal(std::atomic<bool>& flag) {
    static_assert(std::atomic<bool>::is_always_lock_free);
    stop_flag = &flag;
    struct sigaction action {};
    action.sa_handler = [](int number) {
      stop_signal = number;
      stop_flag->store(true);
    };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }
};

// --- the command
// ------------------------------------------------------------------------------------------------------

void apply_preset(const CLI::App& app, BuildCommand& command) {
  if (command.preset.empty()) return;
  const auto unset = [&](const char* option) { return app.count(option) == 0; };
  if (unset("--resize")) command.options.recipe.resize = 256;
  if (unset("--size")) command.size = "224";
  if (unset("--filter")) command.options.recipe.filter = Filter::kBilinear;
  if (unset("--exif")) command.exif = "ignore";
}

void read_values(const CLI::App& app, BuildCommand& command) {
  apply_preset(app, command);
  BuildOptions& options = command.options;
  Recipe& recipe = options.recipe;
  std::tie(recipe.height, recipe.width) = option_values::size(command.size);
  recipe.dtype = parse_dtype(command.dtype);
  recipe.order = parse_axis_order(command.layout);
  recipe.pad_value = static_cast<std::uint8_t>(command.pad_value);
  recipe.apply_exif = command.exif == "apply";
  if (!command.normalize.empty())
    recipe.normalize = option_values::normalization(command.normalize, recipe.color);
  options.shard_size_bytes = option_values::bytes(command.shard_size);
  options.max_bad_percent = option_values::percent(command.max_bad);
  options.fail_on_bad = command.on_error == "fail";
  options.shuffle = !command.no_shuffle;
  if (!command.part.empty())
    std::tie(options.part_index, options.part_count) = option_values::part(command.part);
}

ExitCode run_build(BuildCommand& command) {
  const BuildOptions& options = command.options;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, command.jobs);
  tbb::task_arena arena(static_cast<int>(command.jobs));
  if (command.dry_run) {
    const BuildPreview preview = arena.execute([&] { return preview_build(options); });
    print_preview(preview, options, command.json);
    return ExitCode::kDone;
  }
  BuildProgress progress;
  const auto begin = std::chrono::steady_clock::now();
  BuildReport report;
  {
    const StopOnSignal stop(progress.stop);
    std::optional<ProgressDisplay> display;
    if (!command.quiet) display.emplace(progress);
    report = arena.execute([&] { return build(options, progress); });
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  print_report(report, options, seconds, command.json);
  const ExitCode code = conclude(report, options);
  if (report.status == BuildStatus::kInterrupted)
    std::raise(stop_signal);  // the shell should see what ended us
  return code;
}

template <typename Enum>
CLI::Option* add_choice(CLI::App& app, const char* option, Enum& value,
                        std::initializer_list<Enum> choices, const std::string& text) {
  std::vector<std::pair<std::string, Enum>> names;
  std::string all;
  for (const Enum choice : choices) {
    names.emplace_back(std::string(name(choice)), choice);
    all += (all.empty() ? "" : "|") + names.back().first;
  }
  return app.add_option(option, value, text)
      ->transform(CLI::CheckedTransformer(names).description(""))
      ->option_text(all + " [" + std::string(name(value)) + "]");
}

CLI::Option* add_word(CLI::App& app, const char* option, std::string& value,
                      const std::vector<std::string>& words, const std::string& text) {
  std::string all;
  for (const auto& word : words) all += (all.empty() ? "" : "|") + word;
  return app.add_option(option, value, text)
      ->check(CLI::IsMember(words).description(""))
      ->option_text(all + (value.empty() ? "" : " [" + value + "]"));
}

void add_image_options(CLI::App& app, BuildCommand& command) {
  Recipe& recipe = command.options.recipe;
  app.add_option("--size", command.size, "Height and width of the tensors")
      ->option_text("N|HxW [224]");
  add_choice(app, "--fit", recipe.fit, {Fit::kCrop, Fit::kStretch, Fit::kPad},
             "crop: shorter side to --resize, then centre crop; stretch: exactly HxW; pad: the "
             "longer side fits, the "
             "rest is --pad-value");
  app.add_option("--resize", recipe.resize, "Shorter side before the crop")
      ->check(CLI::Range(1, 16384).description(""))
      ->option_text("N [the size]");
  add_choice(
      app, "--filter", recipe.filter,
      {Filter::kNearest, Filter::kBox, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos},
      "How to resize, as Pillow defines it");
  app.add_option("--pad-value", command.pad_value, "Value of the border that --fit pad adds")
      ->check(CLI::Range(0, 255).description(""))
      ->option_text("0..255 [0]");
  add_word(app, "--dtype", command.dtype, {"uint8", "float16", "bfloat16", "float32"},
           "uint8 takes a quarter of the bytes of float32: normalise while reading");
  app.add_option("--normalize", command.normalize, "(x/255 - mean)/std, only for float dtypes")
      ->option_text("imagenet|MEAN/STD");
  add_word(app, "--layout", command.layout, {"chw", "hwc"}, "Order of the tensor's axes");
  add_choice(app, "--color", recipe.color, {Color::kRgb, Color::kGray}, "Channels");
  add_word(app, "--exif", command.exif, {"apply", "ignore"},
           "What to do with the orientation a camera noted");
  add_word(app, "--preset", command.preset, {"imagenet"},
           "--resize 256 --size 224 --filter bilinear --exif ignore: torchvision's evaluation");
}

void add_dataset_options(CLI::App& app, BuildCommand& command) {
  BuildOptions& options = command.options;
  add_word(app, "--format", options.format, {"tar", "tfrecord", "hdf5"},
           "File format of the shards");
  app.add_option("--split", options.split,
                 "Name of the split; a further one may join a finished OUT")
      ->option_text("NAME [train]");
  app.add_option("--labels", options.labels,
                 "Class: the first folder below SOURCE, none (-1), or from path,label rows")
      ->option_text("folder|none|FILE.csv [folder]");
  app.add_option("--classes", options.classes,
                 "Fixes class names and their numbers; an unknown class is an error")
      ->option_text("FILE|dataset.json");
  auto* shard_size =
      app.add_option("--shard-size", command.shard_size, "About how large a shard is")
          ->option_text("BYTES [512MiB]");
  app.add_option("--shards", options.shards, "How many shards")
      ->excludes(shard_size)
      ->check(CLI::PositiveNumber.description(""))
      ->option_text("N");
  auto* seed = app.add_option("--seed", options.seed, "Of the shuffle before sharding")
                   ->option_text("N [0]");
  app.add_flag("--no-shuffle", command.no_shuffle, "Keep the order of the paths")->excludes(seed);
}

void add_job_options(CLI::App& app, BuildCommand& command) {
  BuildOptions& options = command.options;
  app.add_option("--jobs", command.jobs, "Worker threads")
      ->check(CLI::Range(1, 1024).description(""))
      ->option_text(fmt::format("N [{}]", command.jobs));
  add_word(app, "--on-error", command.on_error, {"skip", "fail"},
           "What a bad image does; skipped ones are listed in OUT/skipped.tsv");
  app.add_option("--max-bad", command.max_bad, "More bad images than this fail the build")
      ->option_text("P% [1%]");
  app.add_option("--max-pixels", options.max_pixels, "Larger images are bad (decompression bombs)")
      ->check(CLI::PositiveNumber.description(""))
      ->option_text(fmt::format("N [{}]", options.max_pixels));
  auto* part =
      app.add_option("--part", command.part, "Only every N-th shard: for many machines on one OUT")
          ->option_text("I/N");
  app.add_flag("--finish", options.finish, "Write the manifest when all parts are there")
      ->excludes(part);
  app.add_flag("--overwrite", options.overwrite, "Throw away what OUT holds of this split");
  app.add_flag("--dry-run", command.dry_run, "Print the plan, write nothing");
  app.add_flag("--quiet", command.quiet, "No progress");
  app.add_flag("--json", command.json, "Summary as JSON on stdout");
}

}  // namespace

void add_build(CLI::App& app, Action& action) {
  auto command = std::make_shared<BuildCommand>();
  CLI::App* build_app =
      app.add_subcommand("build", "Decode and resize the images of a folder into shards");
  build_app->get_formatter()->column_width(34);
  build_app
      ->add_option("SOURCE", command->options.source, "Folder of images, one subfolder per class")
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
  build_app->callback([&action, command, build_app] {
    action = [command, build_app] {
      read_values(*build_app, *command);
      return run_build(*command);
    };
  });
}

}  // namespace precache
