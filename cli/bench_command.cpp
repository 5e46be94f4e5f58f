// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/option_values.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/bytes/text.hpp"
#include "precache/formats/error.hpp"
#include "precache/tools/measure.hpp"

namespace precache {
namespace {

using cli::add;
using cli::add_choice;
using cli::add_enum;
using cli::add_integer;
using Json = nlohmann::ordered_json;

struct BenchCommand {
  std::filesystem::path path;
  std::string split;
  LoaderOptions loader;
  bool on_device = false;
  DeviceOptions device;  // kAuto stands for all paths
  std::string normalize;
  MeasureOptions measure;
  bool json = false;
};

struct BenchResult {
  std::uint64_t samples = 0;
  TensorSpec stored;
  TensorSpec loaded;
  std::optional<double> link_bytes_per_second;
  std::vector<DeviceMeasurement> rows;
};

std::string_view path_name(const BenchCommand& command, const DeviceMeasurement& row) {
  return command.on_device ? name(row.path) : "cpu";
}

Json to_json(const BenchCommand& command, const DeviceMeasurement& row) {
  Json json{{"path", path_name(command, row)}};
  if (!row.refusal.empty()) {
    json["refused"] = row.refusal;
    return json;
  }
  const LoadMeasurement& loading = row.loading;
  json["batches"] = loading.rate.batches;
  json["images"] = loading.rate.images;
  json["bytes"] = loading.rate.bytes;
  json["seconds"] = loading.rate.seconds;
  json["images_per_second"] = loading.rate.images_per_second();
  json["bytes_per_second"] = loading.rate.bytes_per_second();
  json["bytes_registered"] = row.bytes_registered;
  if (loading.wait) {
    json["step"] = {{"steps", loading.wait->steps},
                    {"seconds", loading.wait->seconds},
                    {"waited_seconds", loading.wait->waited_seconds},
                    {"waited_share", loading.wait->share()}};
  }
  return json;
}

std::string device_name(const BenchCommand& command) {
  return command.on_device ? fmt::format("cuda:{}", command.device.device) : "cpu";
}

void print_report(const BenchCommand& command, const BenchResult& result) {
  Json json{{"device", device_name(command)},
            {"samples", result.samples},
            {"stored", result.stored.text()},
            {"loaded", result.loaded.text()},
            {"batch", command.loader.batch_size},
            {"shuffle", name(command.loader.order.shuffle)},
            {"step_seconds", command.measure.step_seconds}};
  if (result.link_bytes_per_second) json["link_bytes_per_second"] = *result.link_bytes_per_second;
  json["paths"] = Json::array();
  for (const auto& row : result.rows) json["paths"].push_back(to_json(command, row));
  print_json(json);
}

void print_text(const BenchCommand& command, const BenchResult& result) {
  print_row("data", fmt::format("{} of {}, loaded as {} in batches of {}, shuffle {}",
                                human::count(result.samples, "sample"), result.stored.text(),
                                result.loaded.text(), human::count(command.loader.batch_size),
                                name(command.loader.order.shuffle)));
  if (result.link_bytes_per_second) {
    print_row("link", fmt::format("{:.2f} GB/s from pinned memory to {}",
                                  *result.link_bytes_per_second / 1e9, device_name(command)));
  }
  for (const DeviceMeasurement& row : result.rows) {
    if (!row.refusal.empty()) {  // nothing was measured
      print_row(path_name(command, row), "not possible: " + row.refusal);
      continue;
    }
    const LoadMeasurement& loading = row.loading;
    const auto images = static_cast<std::uint64_t>(loading.rate.images_per_second() + 0.5);
    std::string text = fmt::format("{:>9} images/s {:>7.2f} GB/s", human::count(images),
                                   loading.rate.bytes_per_second() / 1e9);
    if (loading.wait) {
      text += fmt::format("   steps of {:g} ms wait {:.1f}% of the time",
                          command.measure.step_seconds * 1e3, loading.wait->share() * 100);
    }
    print_row(path_name(command, row), text);
  }
}

std::vector<DeviceMeasurement> measure(const BenchCommand& command, const Dataset& dataset) {
  if (!command.on_device) {
    DeviceMeasurement measured;
    measured.loading = measure_loading(dataset, command.loader, command.measure);
    return {measured};
  }
  if (command.device.device_path == DevicePath::kAuto) {
    return measure_device_paths(dataset, command.loader, command.device, command.measure);
  }
  return {measure_device_loading(dataset, command.loader, command.device, command.measure)};
}

ExitCode run_bench(BenchCommand command) {
  if (!command.on_device && command.device.device_path != DevicePath::kAuto) {
    throw InvalidArgument("--device-path needs --device cuda");
  }
  OpenOptions open;
  open.helper = kOwnProgram;
  const Dataset dataset = Dataset::open(command.path, command.split, open);
  BenchResult result;
  result.samples = dataset.size();
  result.stored = dataset.spec();
  if (!command.normalize.empty()) {
    const Color color = result.stored.channels == 1 ? Color::kGray : Color::kRgb;
    command.loader.transform.normalize = option_values::normalization(command.normalize, color);
  }
  result.loaded = command.loader.transform.result(result.stored);
  // First, because without a GPU nothing else needs to be measured.
  if (command.on_device) {
    result.link_bytes_per_second = measure_link(command.device.device, command.measure);
  }
  warm_up(dataset, command.loader, command.measure);
  result.rows = measure(command, dataset);
  command.json ? print_report(command, result) : print_text(command, result);
  return ExitCode::kDone;
}

void choose_device(BenchCommand& command, const std::string& text) {
  constexpr std::string_view kPrefix = "cuda:";
  command.on_device = text != "cpu";
  if (text.starts_with(kPrefix)) {
    command.device.device = static_cast<int>(
        option_values::integer("--device cuda:N, N", text.substr(kPrefix.size()), 0, 1023));
  } else if (text != "cpu" && text != "cuda") {
    throw InvalidArgument(fmt::format("--device must be one of cpu, cuda, cuda:N, got '{}'", text),
                          did_you_mean(text, {"cuda"}));
  }
}

void add_pixel_options(CLI::App& app, LoaderOptions& options, std::string& normalize) {
  cli::begin_group(app, "Pixels");
  add_enum(app, "--dtype", kAllDTypes, "as stored", "Element type of the batches",
           options.transform.dtype);
  add(app, "--crop", "N", "Crop at random to NxN, 1 to 1000000", [&](const std::string& text) {
    const auto side =
        static_cast<std::uint32_t>(option_values::integer("--crop", text, 1, 1'000'000));
    options.transform.crop = Crop{side, side};
  });
  app.add_flag("--flip", options.transform.flip, "Flip a random half of the images");
  cli::add_text(app, "--normalize", "imagenet|MEAN/STD",
                "(x/255 - mean)/std, as float32 unless --dtype is given", normalize);
}

void add_device_options(CLI::App& app, BenchCommand& command) {
  cli::begin_group(app, "Device");
  add(app, "--device", "cpu|cuda|cuda:N [cpu]", "Device that receives the batches",
      [&](const std::string& text) { choose_device(command, text); });
  add_choice(app, "--device-path", {"all", "staged", "strided", "gather", "resident"}, "all",
             "How data gets to the GPU, see docs/gpu.md; all: measure staged, strided and gather",
             [&](const std::string& word) {
               command.device.device_path = parse_device_path(word == "all" ? "auto" : word);
             });
  add(app, "--pin-shards-up-to", "BYTES [4GiB]",
      "For strided and gather: keep shards up to this size in pinned memory",
      [&](const std::string& text) {
        command.device.pin_shards_up_to_bytes = option_values::bytes(text, "--pin-shards-up-to");
      });
  add(app, "--resident-up-to", "BYTES [8GiB]",
      "For resident: the most memory that the dataset may take on the GPU",
      [&](const std::string& text) {
        command.device.resident_up_to_bytes = option_values::bytes(text, "--resident-up-to");
      });
}

void add_run_options(CLI::App& app, BenchCommand& command) {
  cli::begin_group(app, "Run");
  add_integer(app, "--batch", "N [256]", "Images per batch", std::uint64_t{1},
              std::uint64_t{1'000'000}, command.loader.batch_size);
  add_choice(app, "--shuffle", {"none", "block", "full"}, "none", "Order of the samples",
             [&](const std::string& word) { command.loader.order.shuffle = parse_shuffle(word); });
  add(app, "--step", "MS",
      "Also measure how long training steps of MS milliseconds wait, 0.01 to 1000000",
      [&](const std::string& text) {
        command.measure.step_seconds = option_values::decimal("--step", text, 0.01, 1e6) / 1e3;
      });
  add(app, "--seconds", "S [3]", "Duration of each measurement, 0.01 to 1000000",
      [&](const std::string& text) {
        command.measure.seconds = option_values::decimal("--seconds", text, 0.01, 1e6);
      });
  cli::add_jobs(app, 4096U, command.loader.threads);
  app.add_flag("--json", command.json, "Print the result as JSON");
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto command = std::make_shared<BenchCommand>();
  command->device.pin_shards_up_to_bytes = std::uint64_t{4} << 30;
  CLI::App* bench_app = app.add_subcommand("bench", "Measure how fast a dataset delivers batches");
  cli::begin_group(*bench_app, "Input");
  cli::add_argument(*bench_app, "SHARDS",
                    "A dataset folder, a shard, or a quoted pattern such as 'train-*.tar'",
                    command->path);
  cli::add_text(*bench_app, "--split", "NAME [the only one, or train]", "Split of a dataset",
                command->split);
  add_pixel_options(*bench_app, command->loader, command->normalize);
  add_device_options(*bench_app, *command);
  add_run_options(*bench_app, *command);
  bench_app->footer(
      "Examples:\n"
      "  precache bench shards\n"
      "  precache bench shards --shuffle full --crop 224 --flip --normalize imagenet\n"
      "  precache bench shards --step 20\n"
      "  precache bench shards --device cuda\n"
      "\n"
      "Before the first measurement, batches are read for as long as one measurement takes.\n"
      "Exit status: 0 done, 2 wrong usage, 3 system error, 4 damaged, 5 no CUDA or no GPU, 6 CUDA "
      "error.");
  bench_app->callback([&action, command] { action = [command] { return run_bench(*command); }; });
}

}  // namespace precache
