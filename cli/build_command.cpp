// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/human.hpp"
#include "cli/option_values.hpp"
#include "cli/progress_display.hpp"
#include "precache/convert/build.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownSkips = 5;

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

// --- reports
// ----------------------------------------------------------------------------------------------------------

std::string left_out_text(const BuildPreview& preview) {
  std::uint64_t total = 0;
  std::string reasons;
  for (const auto& [reason, count] : preview.left_out) {
    total += count;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", human::count(count), reason);
  }
  return total == 0 ? "" : fmt::format("{} ({})", human::count(total, "file"), reasons);
}

double overhead_percent(std::uint64_t bytes, std::uint64_t samples, std::uint64_t tensor_bytes) {
  const double tensors = static_cast<double>(samples) * static_cast<double>(tensor_bytes);
  return tensors == 0 ? 0 : (static_cast<double>(bytes) / tensors - 1) * 100;
}

Json preview_json(const BuildPreview& preview, const BuildOptions& options) {
  const TensorSpec spec = options.recipe.spec();
  return {{"samples", preview.samples},
          {"classes", preview.classes.size()},
          {"empty_classes", preview.empty_classes},
          {"left_out", preview.left_out},
          {"source_bytes", preview.source_bytes},
          {"format", options.format},
          {"dtype", name(spec.dtype)},
          {"shape", spec.shape()},
          {"layout", name(spec.order)},
          {"shards", preview.shards},
          {"tensor_bytes", preview.tensor_bytes},
          {"record_bytes", preview.record_bytes},
          {"bytes_needed", preview.bytes_needed},
          {"bytes_free", preview.bytes_free}};
}

void print_row(std::string_view title, const std::string& text) {
  if (!text.empty()) fmt::print("{:<10}{}\n", title, text);
}

std::string tensor_text(const BuildOptions& options) {
  const TensorSpec spec = options.recipe.spec();
  const auto shape = spec.shape();
  return fmt::format("{} {}x{}x{} ({})", name(spec.dtype), shape[0], shape[1], shape[2],
                     name(spec.order));
}

/// What training can no longer vary, said before it is too late.
std::string frozen_text(const Recipe& recipe) {
  std::string text;
  switch (recipe.fit) {
    case Fit::kCrop:
      text = fmt::format("shorter side to {} ({}), centre crop {}x{}", recipe.shorter_side(),
                         name(recipe.filter), recipe.height, recipe.width);
      break;
    case Fit::kStretch:
      text =
          fmt::format("stretched to {}x{} ({})", recipe.height, recipe.width, name(recipe.filter));
      break;
    case Fit::kPad:
      text = fmt::format("fitted into {}x{} ({}), padded with {}", recipe.height, recipe.width,
                         name(recipe.filter), recipe.pad_value);
      break;
  }
  text += recipe.apply_exif ? ", EXIF orientation applied" : ", EXIF orientation ignored";
  if (recipe.normalize) text += ", normalised";
  return text;
}

void print_preview(const BuildPreview& preview, const BuildOptions& options) {
  print_row("source", fmt::format("{}, {}, {}", human::count(preview.samples, "image"),
                                  human::count(preview.classes.size(), "class"),
                                  human::bytes(preview.source_bytes)));
  print_row("left out", left_out_text(preview));
  if (!preview.empty_classes.empty()) {
    print_row("warning", fmt::format("{} without images, '{}' first",
                                     human::count(preview.empty_classes.size(), "class"),
                                     preview.empty_classes.front()));
  }
  print_row("tensor",
            fmt::format("{}, {}", tensor_text(options), human::bytes(preview.tensor_bytes)));
  print_row("frozen", frozen_text(options.recipe));
  print_row("record", fmt::format("{}, overhead {:.2f} %", human::bytes(preview.record_bytes),
                                  overhead_percent(preview.bytes_needed, preview.samples,
                                                   preview.tensor_bytes)));
  print_row("shards", fmt::format("{} {} of {} to {} samples", human::count(preview.shards),
                                  options.format, human::count(preview.smallest_shard_samples),
                                  human::count(preview.largest_shard_samples)));
  print_row("disk", fmt::format("{} needed, {} free{}", human::bytes(preview.bytes_needed),
                                human::bytes(preview.bytes_free),
                                preview.bytes_needed > preview.bytes_free ? ": NOT ENOUGH" : ""));
}

std::string_view status_name(BuildStatus status) {
  switch (status) {
    case BuildStatus::kComplete:
      return "complete";
    case BuildStatus::kPartDone:
      return "part done";
    case BuildStatus::kTooManyBad:
      return "too many bad samples";
    case BuildStatus::kInterrupted:
      return "interrupted";
  }
  return {};
}

void print_report_json(const BuildReport& report, const BuildOptions& options, double seconds) {
  Json json = {
      {"status", status_name(report.status)},
      {"out", options.out.string()},
      {"split", options.split},
      {"samples", report.samples},
      {"skipped", report.skipped.size()},
      {"damaged", report.damaged},
      {"bytes", report.bytes},
      {"shards_done", report.shards_done},
      {"shards_resumed", report.shards_resumed},
      {"converted", report.converted},
      {"seconds", seconds},
      {"images_per_second", seconds > 0 ? static_cast<double>(report.converted) / seconds : 0.0},
      {"plan", preview_json(report.preview, options)}};
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_report(const BuildReport& report, const BuildOptions& options, double seconds) {
  const BuildPreview& preview = report.preview;
  if (report.shards_resumed == report.shards_planned && report.converted == 0 &&
      report.skipped.empty()) {
    fmt::print("{}: complete already, nothing to do\n", options.out.string());
  }
  print_row(options.split, fmt::format("{} in {}, {}", human::count(report.samples, "sample"),
                                       human::count(report.shards_done, options.format + " shard"),
                                       human::count(preview.classes.size(), "class")));
  print_row("tensor", tensor_text(options));
  print_row("frozen", frozen_text(options.recipe));
  print_row("bytes",
            fmt::format("{}, overhead {:.2f} %", human::bytes(report.bytes),
                        overhead_percent(report.bytes, report.samples, preview.tensor_bytes)));
  print_row("left out", left_out_text(preview));
  if (report.shards_resumed != 0)
    print_row("resumed", human::count(report.shards_resumed, "shard") + " were there already");
  if (report.damaged != 0)
    print_row("damaged",
              human::count(report.damaged, "image") + " with damage that decoders tolerate");
  if (report.converted != 0) {
    print_row("time", fmt::format("{}, {:.0f} images/s", human::clock(seconds),
                                  static_cast<double>(report.converted) / seconds));
  }
}

void print_skipped(const BuildReport& report, const BuildOptions& options) {
  if (report.skipped.empty()) return;
  const double percent = 100.0 * static_cast<double>(report.skipped.size()) /
                         static_cast<double>(report.preview.samples);
  fmt::print(stderr, "precache: {} skipped ({:.2g} %), listed in '{}':\n",
             human::count(report.skipped.size(), "sample"), percent,
             (options.out / "skipped.tsv").string());
  for (std::size_t i = 0; i < std::min(kShownSkips, report.skipped.size()); ++i) {
    fmt::print(stderr, "  {}: {}\n", report.skipped[i].path, report.skipped[i].reason);
  }
  if (report.skipped.size() > kShownSkips) fmt::print(stderr, "  ...\n");
}

ExitCode conclude(const BuildReport& report, const BuildOptions& options) {
  const std::string done =
      fmt::format("{} of {} shards are complete", report.shards_done, report.shards_planned);
  switch (report.status) {
    case BuildStatus::kComplete:
      break;
    case BuildStatus::kPartDone:
      fmt::print(
          stderr,
          "precache: part {}/{} is done; when all parts are, run the same command with --finish\n",
          options.part_index, options.part_count);
      break;
    case BuildStatus::kTooManyBad:
      if (options.fail_on_bad) {
        fmt::print(stderr, "precache: a bad sample ended the build, as --on-error fail asks\n");
      } else {
        fmt::print(stderr, "precache: too many bad samples: more than {} % of {}\n",
                   options.max_bad_percent, human::count(report.preview.samples));
      }
      fmt::print(stderr,
                 "  {}; mend the files and start over with --overwrite, or run the same\n"
                 "  command with a higher --max-bad to continue without them.\n",
                 done);
      return ExitCode::kTooManyBad;
    case BuildStatus::kInterrupted:
      fmt::print(stderr, "precache: interrupted\n  {}; run the same command again to continue.\n",
                 done);
      break;
  }
  return ExitCode::kDone;
}

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
    if (command.json) {
      fmt::print("{}\n", preview_json(preview, options).dump(2));
    } else {
      print_preview(preview, options);
    }
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
  if (command.json) {
    print_report_json(report, options, seconds);
  } else if (report.status == BuildStatus::kComplete || report.status == BuildStatus::kPartDone) {
    print_report(report, options, seconds);
  }
  std::fflush(stdout);
  print_skipped(report, options);
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
