// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/progress_display.hpp"
#include "cli/say.hpp"
#include "cli/shard_paths.hpp"
#include "cli/stop_on_signal.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/tools/verify.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyCommand : ShardPaths {
  VerifyOptions options;
};

Json to_json(const std::vector<ShardFault>& faults) {
  Json all = Json::array();
  for (const ShardFault& fault : faults) {
    const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
    all.push_back({{"file", fault.file.string()},
                   {"record", or_null(fault.record)},
                   {"offset", or_null(fault.offset)},
                   {"reason", fault.reason}});
  }
  return all;
}

void print_report(const VerifyReport& report) {
  const Json json{{"whole", report.faults.empty() && report.unsupported.empty()},
                  {"files", report.files},
                  {"files_in_manifest", report.known_files},
                  {"samples", report.samples},
                  {"bytes", report.bytes},
                  {"faults", to_json(report.faults)},
                  {"unsupported", to_json(report.unsupported)}};
  print_json(json);
}

void print_text(const VerifyReport& report) {
  for (const ShardFault& fault : report.faults) {
    const std::string record = fault.record ? fmt::format("record {}, ", *fault.record) : "";
    const std::string byte = fault.offset ? fmt::format("byte {}: ", *fault.offset) : "";
    print_wrapped(fmt::format("{}: {}{}{}", fault.file.string(), record, byte, fault.reason));
  }
  for (const ShardFault& fault : report.unsupported) {
    print_wrapped("not checked: " + fault.reason);
  }
  const std::string checked =
      report.known_files == report.files ? "against the manifest"
      : report.known_files == 0
          ? "without a manifest"
          : fmt::format("{} of them against a manifest", human::count(report.known_files));
  const auto [word, style] = !report.faults.empty()        ? std::pair("damaged", terminal::kRed)
                             : !report.unsupported.empty() ? std::pair("unknown", terminal::kYellow)
                                                           : std::pair("whole", terminal::kGreen);
  print_row(word,
            fmt::format("{} in {}, {}, {}", human::count(report.samples, "sample"),
                        human::count(report.files, "file"), size_text(report.bytes), checked),
            SIZE_MAX, style);
}

ProgressLine describe(const VerifyProgress& progress, double seconds) {
  const auto planned = static_cast<double>(progress.bytes_planned);
  const auto done = static_cast<double>(progress.bytes_done);
  if (planned == 0) return {std::nullopt, "listing shards ..."};
  const double share = std::min(done / planned, 1.0);
  const double rest = done > 0 ? (planned - done) / done * seconds : 0;
  return {share,
          fmt::format("{:.0f}% {} of {} {:.0f} MB/s {} left", share * 100,
                      size_text(progress.bytes_done), size_text(progress.bytes_planned),
                      done / seconds / 1e6, human::clock(std::max(rest, 0.0))),
          progress.bytes_done, progress.bytes_planned, "bytes"};
}

ExitCode run_verify(const VerifyCommand& command) {
  VerifyProgress progress;
  VerifyReport report;
  {
    const StopOnSignal stop(progress.stop);
    const ProgressDisplay display(command.quiet,
                                  [&](double seconds) { return describe(progress, seconds); });
    report = verify(without_sidecars(command.paths), command.options, progress);
  }
  if (report.interrupted) {
    say("precache: interrupted; the result is unknown\n");
    StopOnSignal::raise_again();
  }
  command.json ? print_report(report) : print_text(report);
  if (!report.faults.empty()) return ExitCode::kCorrupt;
  return report.unsupported.empty() ? ExitCode::kDone : ExitCode::kUnsupported;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto command = std::make_shared<VerifyCommand>();
  CLI::App* verify_app = app.add_subcommand("verify", "Check shards for damage");
  add_shard_paths(*verify_app, *command, command->options.split);
  cli::add_jobs(*verify_app, 4096U, command->options.threads);
  verify_app->footer(
      "Examples:\n"
      "  precache verify shards\n"
      "  precache verify shards --split val\n"
      "  precache verify 'other/train-*.tar' --json\n"
      "\n"
      "With a manifest, every byte is checked. Without one, what the format allows: framing, "
      "checksums of tar headers, CRCs of TFRecords and of all records that precache wrote, the "
      "structure of HDF5.\n"
      "Exit status: 0 intact, 2 wrong usage, 3 system error, 4 damaged, 5 unsupported.");
  command->options.helper = kOwnProgram;
  verify_app->callback([&action, command] { action = [command] { return run_verify(*command); }; });
}

}  // namespace precache
