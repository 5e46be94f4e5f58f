// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/index_report.hpp"
#include "cli/option_values.hpp"
#include "cli/say.hpp"
#include "cli/workers.hpp"
#include "precache/convert/sidecars.hpp"
#include "precache/formats/usable_threads.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

struct IndexCommand {
  std::filesystem::path path;
  SidecarOptions options;
  unsigned jobs = usable_threads();
  bool json = false;
};

ExitCode run_index(const IndexCommand& command) {
  Workers workers(command.jobs);
  const SidecarReport report =
      workers.execute([&] { return write_sidecars(command.path, command.options); });
  if (command.json) {
    print_json(to_json(report));
  } else {
    for (const std::string& line : index_lines(report)) print("{}\n", line);
  }
  std::fflush(stdout);  // before what follows on stderr
  say_missing(report);
  return ExitCode::kDone;
}

}  // namespace

void add_index(CLI::App& app, Action& action) {
  auto command = std::make_shared<IndexCommand>();
  CLI::App* index_app =
      app.add_subcommand("index", "Write what other readers want to find next to shards");
  index_app->get_formatter()->column_width(34);
  index_app
      ->add_option("PATH", command->path,
                   "A dataset folder, a shard, or a pattern of them (quoted): 'train-*.tar'")
      ->required()
      ->option_text(" ");
  index_app
      ->add_option_function<std::string>(
          "--kind",
          [command](const std::string& text) { command->options.kinds = parse_index_kinds(text); },
          "dali: SHARD.idx for NVIDIA DALI (tar, tfrecord); wids: SPLIT.wids.json (tar); "
          "vds: SPLIT.vds, all shards as one HDF5 file (hdf5); tfds: dataset_info.json for "
          "TensorFlow Datasets (tfrecord)")
      ->option_text("KIND[,KIND...] [all that fit]");
  index_app->add_option("--split", command->options.split, "Only this split of a dataset")
      ->option_text("NAME [all]");
  index_app
      ->add_option_function<std::string>(
          "--jobs",
          [command](const std::string& text) {
            command->jobs = static_cast<unsigned>(option_values::integer("--jobs", text, 1, 1024));
          },
          "Threads")
      ->option_text(fmt::format("N [{}]", command->jobs));
  index_app->add_flag("--json", command->json, "What was written, as JSON on stdout");
  index_app->footer(
      "Shards are not changed. An index that is there already is made anew; a file of another\n"
      "kind is never replaced. vds and tfds need a dataset made by precache.\n"
      "Exit status: 0 done, 2 usage, 3 system, 4 corrupt data, 5 unsupported.");
  index_app->callback([&action, command] { action = [command] { return run_index(*command); }; });
}

}  // namespace precache
