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
#include "precache/formats/error.hpp"
#include "precache/tools/measure.hpp"

namespace precache {
namespace {

using cli::add;
using cli::add_choice;
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

/// How fast one way is, under the name that the user knows it by.
struct BenchRow {
  std::string name;
  DeviceMeasurement measured;
};

struct BenchResult {
  std::uint64_t samples = 0;
  TensorSpec stored;
  TensorSpec loaded;
  std::optional<double> link_bytes_per_second;
  std::vector<BenchRow> rows;
};

Json to_json(const BenchRow& row) {
  Json json{{"path", row.name}};
  if (!row.measured.refusal.empty()) {
    json["refused"] = row.measured.refusal;
    return json;
  }
  const LoadMeasurement& loading = row.measured.loading;
  json["batches"] = loading.rate.batches;
  json["images"] = loading.rate.images;
  json["bytes"] = loading.rate.bytes;
  json["seconds"] = loading.rate.seconds;
  json["images_per_second"] = loading.rate.images_per_second();
  json["bytes_per_second"] = loading.rate.bytes_per_second();
  json["bytes_registered"] = row.measured.bytes_registered;
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
  for (const BenchRow& row : result.rows) json["paths"].push_back(to_json(row));
  print_json(json);
}

void print_text(const BenchCommand& command, const BenchResult& result) {
  print("data      {} of {}, loaded as {} in batches of {}, shuffle {}\n",
        human::count(result.samples, "sample"), result.stored.text(), result.loaded.text(),
        human::count(command.loader.batch_size), name(command.loader.order.shuffle));
  if (result.link_bytes_per_second) {
    print("link      {:.2f} GB/s from pinned memory to {}\n", *result.link_bytes_per_second / 1e9,
          device_name(command));
  }
  for (const BenchRow& row : result.rows) {
    if (!row.measured.refusal.empty()) {
      print("{:<9} not possible: {}\n", row.name, row.measured.refusal);
      continue;
    }
    const LoadMeasurement& loading = row.measured.loading;
    const auto images = static_cast<std::uint64_t>(loading.rate.images_per_second() + 0.5);
    print("{:<9} {:>9} images/s {:>7.2f} GB/s", row.name, human::count(images),
          loading.rate.bytes_per_second() / 1e9);
    if (loading.wait) {
      print("   steps of {:g} ms wait {:.1f}% of the time", command.measure.step_seconds * 1e3,
            loading.wait->share() * 100);
    }
    print("\n");
  }
}

std::vector<BenchRow> measure(const BenchCommand& command, const Dataset& dataset) {
  if (!command.on_device) {
    DeviceMeasurement measured;
    measured.loading = measure_loading(dataset, command.loader, command.measure);
    return {{"cpu", measured}};
  }
  std::vector<BenchRow> rows;
  const auto add_row = [&](const DeviceMeasurement& measured) {
    rows.push_back({std::string(name(measured.path)), measured});
  };
  if (command.device.device_path != DevicePath::kAuto) {
    add_row(measure_device_loading(dataset, command.loader, command.device, command.measure));
    return rows;
  }
  for (const DeviceMeasurement& measured :
       measure_device_paths(dataset, command.loader, command.device, command.measure)) {
    add_row(measured);
  }
  return rows;
}

ExitCode run_bench(BenchCommand command) {
  if (!command.on_device && command.device.device_path != DevicePath::kAuto) {
    throw InvalidArgument("--device-path has no meaning without --device cuda");
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
  // First of all: without a GPU nothing else needs to be measured.
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
    throw InvalidArgument(fmt::format("--device '{}' is none of cpu, cuda, cuda:N", text));
  }
}

void add_loader_options(CLI::App& app, LoaderOptions& options, std::string& normalize) {
  add(app, "--batch", "N [256]", "Images in a batch", [&](const std::string& text) {
    options.batch_size = option_values::integer("--batch", text, 1, 1'000'000);
  });
  add_choice(app, "--shuffle", {"none", "block", "full"}, "none", "Order of the samples",
             [&](const std::string& word) { options.order.shuffle = parse_shuffle(word); });
  add_choice(app, "--dtype", cli::names(kAllDTypes), "",
             "Element type of the batches; as it is stored",
             [&](const std::string& word) { options.transform.dtype = parse_dtype(word); });
  add(app, "--crop", "N", "Crop at random to NxN", [&](const std::string& text) {
    const auto side =
        static_cast<std::uint32_t>(option_values::integer("--crop", text, 1, 1'000'000));
    options.transform.crop = Crop{side, side};
  });
  app.add_flag("--flip", options.transform.flip, "Flip a random half of the images");
  add(app, "--normalize", "imagenet|MEAN/STD",
      "(x/255 - mean)/std, to float32 unless --dtype says otherwise",
      [&](const std::string& text) { normalize = option_values::not_empty("--normalize", text); });
  add(app, "--jobs", "N [what the process may use]", "Threads that fill batches",
      [&](const std::string& text) {
        options.threads = static_cast<unsigned>(option_values::integer("--jobs", text, 1, 4096));
      });
}

void add_device_options(CLI::App& app, BenchCommand& command) {
  add(app, "--device", "cpu|cuda|cuda:N [cpu]", "Where batches are put",
      [&](const std::string& text) { choose_device(command, text); });
  add_choice(app, "--device-path", {"all", "staged", "strided", "gather"}, "all",
             "Way to the GPU, see docs/gpu.md", [&](const std::string& word) {
               command.device.device_path = parse_device_path(word == "all" ? "auto" : word);
             });
  add(app, "--pin-shards-up-to", "BYTES [4GiB]",
      "For strided and gather: shards no larger than this are kept in memory that cannot be "
      "swapped out",
      [&](const std::string& text) {
        command.device.pin_shards_up_to_bytes = option_values::bytes(text, "--pin-shards-up-to");
      });
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto command = std::make_shared<BenchCommand>();
  command->device.pin_shards_up_to_bytes = std::uint64_t{4} << 30;
  CLI::App* bench_app = app.add_subcommand("bench", "Measure how fast batches of a dataset come");
  bench_app->get_formatter()->column_width(34);
  bench_app
      ->add_option("SHARDS", command->path,
                   "Dataset folder, shard, or a pattern (quoted): 'train-*.tar'")
      ->required()
      ->option_text(" ");
  bench_app->add_option("--split", command->split, "This split of a dataset")
      ->option_text("NAME [the only one, or train]");
  add_device_options(*bench_app, *command);
  add_loader_options(*bench_app, command->loader, command->normalize);
  add(*bench_app, "--step", "MS", "Also measure how long training steps of MS milliseconds wait",
      [command](const std::string& text) {
        command->measure.step_seconds = option_values::decimal("--step", text, 0.01, 1e6) / 1e3;
      });
  add(*bench_app, "--seconds", "S [3]", "How long each measurement takes",
      [command](const std::string& text) {
        command->measure.seconds = option_values::decimal("--seconds", text, 0.01, 1e6);
      });
  bench_app->add_flag("--json", command->json, "Result as JSON on stdout");
  bench_app->footer(
      "Reads for as long as one measurement takes before the first one.\n"
      "Exit status: 0 done, 2 usage, 3 system, 4 damaged, 5 no CUDA or no GPU, 6 CUDA refused.");
  bench_app->callback([&action, command] { action = [command] { return run_bench(*command); }; });
}

}  // namespace precache
