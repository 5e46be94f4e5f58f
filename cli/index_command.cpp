// SPDX-License-Identifier: Apache-2.0
#include "cli/index_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/job_command.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"
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
  const SidecarReport report =
      with_threads(command.jobs, [&] { return write_sidecars(command.path, command.options); });
  if (command.json) {
    print_json(to_json(report));
  } else {
    for (const auto& [kind, text] : index_rows(report)) print_row(kind, text);
  }
  std::fflush(stdout);  // before the messages on stderr
  say_missing(report);
  return ExitCode::kDone;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> index_rows(const SidecarReport& report) {
  std::vector<std::pair<std::string, std::string>> rows;
  std::uint64_t files = 0;
  std::uint64_t samples = 0;
  for (const WrittenIndex& index : report.written) {
    if (index.kind == SidecarKind::kDali) {
      files += 1;
      samples += index.samples;
    } else {
      rows.emplace_back(
          name(index.kind),
          fmt::format("{} in {}", human::count(index.samples, "sample"), index.file.string()));
    }
  }
  if (files != 0) {
    rows.emplace(
        rows.begin(), "dali",
        fmt::format("{} in {}", human::count(samples, "sample"), human::count(files, ".idx file")));
  }
  return rows;
}

Json to_json(const SidecarReport& report) {
  Json written = Json::array();
  for (const WrittenIndex& index : report.written) {
    written.push_back(
        {{"kind", name(index.kind)}, {"file", index.file.string()}, {"samples", index.samples}});
  }
  Json missing = Json::array();
  for (const MissingIndex& index : report.missing) {
    missing.push_back(
        {{"kind", name(index.kind)}, {"of", index.of.string()}, {"reason", index.reason}});
  }
  return {{"written", std::move(written)}, {"missing", std::move(missing)}};
}

void say_missing(const SidecarReport& report) {
  for (const MissingIndex& index : report.missing) {
    say("precache: cannot write a {} index for '{}': {}\n", name(index.kind), index.of.string(),
        index.reason);
  }
}

void add_index(CLI::App& app, Action& action) {
  auto command = std::make_shared<IndexCommand>();
  CLI::App* index_app =
      app.add_subcommand("index", "Write the index files that other readers need next to shards");
  cli::begin_group(*index_app, "Input");
  cli::add_argument(*index_app, "PATH",
                    "A dataset folder, a shard, or a quoted pattern such as 'train-*.tar'",
                    command->path);
  cli::add_text(*index_app, "--split", "NAME [all]", "Only this split of a dataset",
                command->options.split);
  cli::begin_group(*index_app, "Output");
  cli::add(
      *index_app, "--kind", "KIND[,KIND...] [all that fit]",
      "dali: SHARD.idx for NVIDIA DALI (tar, tfrecord); wids: SPLIT.wids.json (tar); vds: "
      "SPLIT.vds, all shards as one HDF5 file (hdf5); tfds: dataset_info.json for TensorFlow "
      "Datasets (tfrecord)",
      [command](const std::string& text) { command->options.kinds = parse_index_kinds(text); });
  cli::begin_group(*index_app, "Run");
  cli::add_jobs(*index_app, 1024U, command->jobs);
  index_app->add_flag("--json", command->json, "Print what was written as JSON");
  index_app->footer(
      "Examples:\n"
      "  precache index shards\n"
      "  precache index 'shards/train-*.tar' --kind dali,wids\n"
      "\n"
      "Shards are not changed. Existing indexes are replaced, other files never are. vds and tfds "
      "need a dataset that precache wrote.\n"
      "Exit status: 0 done, 2 wrong usage, 3 system error, 4 corrupt data, 5 unsupported.");
  index_app->callback([&action, command] { action = [command] { return run_index(*command); }; });
}

}  // namespace precache
