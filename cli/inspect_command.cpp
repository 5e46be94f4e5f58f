// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/option_values.hpp"
#include "cli/progress_display.hpp"
#include "cli/say.hpp"
#include "cli/sidecars.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/convert/pictures.hpp"
#include "precache/formats/error.hpp"
#include "precache/protobuf/message_survey.hpp"
#include "precache/tools/inspect_text.hpp"

namespace precache {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kTitleColumns = 10;
constexpr std::size_t kTableRows = 12;

struct InspectCommand {
  std::vector<std::filesystem::path> paths;
  InspectOptions options;
  std::filesystem::path proto;
  std::string message;
  std::uint64_t samples = 24;
  std::filesystem::path sheet;
  std::filesystem::path html;
  bool quiet = false;
  bool json = false;
};

/// A title and text beside it, broken between words.
void print_fact(const FactRow& row) {
  constexpr std::size_t kWidth = kColumns - kTitleColumns;
  std::string title = row.title;
  std::string_view rest = row.text;
  while (!rest.empty()) {
    std::size_t end = rest.size();
    if (end > kWidth) {
      end = rest.rfind(' ', kWidth);
      if (end == std::string_view::npos || end == 0) end = std::min(rest.find(' '), rest.size());
    }
    print("{:<{}}{}\n", title, kTitleColumns, rest.substr(0, end));
    title.clear();
    rest.remove_prefix(end);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
}

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }));
}

void print_table(const FactTable& table) {
  std::vector<std::size_t> widths(table.head.size());
  const auto measure = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], letters(row[i]));
  };
  measure(table.head);
  for (const auto& row : table.rows) measure(row);
  const auto print_line = [&](const std::vector<std::string>& row) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string filling(widths[i] - letters(row[i]), ' ');
      line += " " + (i < table.left_columns ? row[i] + filling : filling + row[i]) + " ";
    }
    print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  };
  print("\n");
  print_line(table.head);
  for (const auto& row : table.rows) print_line(row);
  if (!table.note.empty()) print("  ({})\n", table.note);
}

void print_text(const Inspection& facts) {
  print("{}: {}\n\n", facts.path.string(), headline(facts));
  for (const FactRow& row : fact_rows(facts)) print_fact(row);
  if (facts.classes && !facts.classes->is_complete) {
    print_fact({"more", "--all reads every file, label and value"});
  }
  for (const FactTable& table : fact_tables(facts, kTableRows)) print_table(table);
}

/// A picture in the place of a shard or a manifest would be the end of it: only an earlier one,
/// which begins alike, may be replaced.
void check_replaces_its_like(const std::filesystem::path& out, std::string_view content) {
  constexpr std::size_t kSignatureBytes = 8;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(out, ignored)) return;
  std::string there(kSignatureBytes, '\0');
  const File file(out, O_RDONLY);
  there.resize(std::min<std::uint64_t>(there.size(), file.size()));
  file.read_at(0, std::as_writable_bytes(std::span(there)));
  if (there.empty() || there == content.substr(0, kSignatureBytes)) return;
  throw InvalidArgument(
      fmt::format("refusing to overwrite '{}': precache inspect did not write it", out.string()),
      "Choose another name for the output.");
}

void write_output(const std::filesystem::path& out, const std::vector<Inspected>& paths,
                  std::string (*make)(const std::vector<Inspected>&)) {
  if (out.empty()) return;
  for (const Inspected& path : paths) {
    if (path.preview.tiles.empty()) {
      say("precache: no sample of '{}' can be drawn\n", path.facts.path.string());
    }
  }
  const std::string content = make(paths);
  check_replaces_its_like(out, content);
  write_file_atomically(out, content);
  say("precache: wrote '{}'\n", out.string());
}

ExitCode conclude(const std::vector<Inspected>& paths) {
  const auto is_damaged = [](const Inspected& path) { return !path.facts.faults.empty(); };
  const auto is_unknown = [](const Inspected& path) {
    return path.facts.kind == Inspection::Kind::kFile && path.facts.content.empty();
  };
  if (std::ranges::any_of(paths, is_damaged)) return ExitCode::kCorrupt;
  return std::ranges::any_of(paths, is_unknown) ? ExitCode::kUnsupported : ExitCode::kDone;
}

ProgressLine describe(const InspectProgress& progress) {
  const auto line = [](std::uint64_t done, std::uint64_t planned, const char* verb,
                       const char* unit) -> ProgressLine {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(planned));
    return {share,
            fmt::format("{} {}: {:.0f}% {}/{}", verb, unit, share * 100, human::count(done),
                        human::count(planned)),
            done, planned, unit};
  };
  const std::uint64_t reads = progress.reads_planned;
  const std::uint64_t files = progress.files_planned;
  if (reads != 0) return line(progress.reads_done, reads, "reading", "values");
  if (files != 0) return line(progress.files_done, files, "scanning", "files");
  return {std::nullopt, "listing shards ..."};
}

std::vector<Inspected> inspect_all(const InspectCommand& command) {
  std::vector<Inspected> paths;
  for (const auto& path : without_sidecars(command.paths)) {
    InspectProgress progress;
    const ProgressDisplay display(command.quiet, [&](double) { return describe(progress); });
    InspectOptions options = command.options;
    options.progress = &progress;
    options.helper = kOwnProgram;
    std::unique_ptr<RecordSurvey> messages;
    if (!command.proto.empty()) messages = survey_messages(command.proto, command.message);
    options.records = messages.get();
    Inspected& inspected = paths.emplace_back();
    inspected.facts = inspect(path, options);
    if (messages && !inspected.facts.tfrecord) {
      say("precache: --proto is not used for '{}': it is not a third-party TFRecord file\n",
          path.string());
    }
    describe_images(inspected.facts);
    if (!command.sheet.empty() || !command.html.empty()) {
      inspected.preview = draw_preview(inspected.facts, command.samples);
    }
    inspected.facts.dataset.reset();  // many paths would keep many files open
  }
  return paths;
}

ExitCode run_inspect(const InspectCommand& command) {
  if (command.proto.empty() != command.message.empty()) {
    throw InvalidArgument("--proto and --message need each other");
  }
  const std::vector<Inspected> paths = inspect_all(command);
  std::vector<Inspection> all;
  for (const Inspected& path : paths) all.push_back(path.facts);
  if (command.json) {
    std::fputs(to_json(all).c_str(), stdout);
  } else {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i != 0) print("\n");
      print_text(all[i]);
    }
  }
  std::fflush(stdout);  // before what follows on stderr
  write_output(command.sheet, paths, contact_sheet);
  write_output(command.html, paths, inspection_page);
  return conclude(paths);
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto command = std::make_shared<InspectCommand>();
  CLI::App* inspect_app = app.add_subcommand(
      "inspect", "Describe what is in shards, written by precache or by other tools");
  cli::add_shard_paths(*inspect_app, command->paths, command->options.split, command->quiet,
                       command->json);
  inspect_app->add_flag("--all", command->options.all,
                        "Read every file, label and value, not just some");
  cli::add_message_options(*inspect_app, command->proto, command->message);
  inspect_app->add_option("--sheet", command->sheet, "Write a contact sheet of samples")
      ->option_text("FILE.png");
  inspect_app
      ->add_option("--html", command->html,
                   "Write a page with facts, samples and histograms; it needs nothing but itself")
      ->option_text("FILE.html");
  cli::add(*inspect_app, "--samples", "N [24]", "Samples on the sheet and the page",
           [command](const std::string& text) {
             command->samples = option_values::integer("--samples", text, 1, 1000);
           });
  inspect_app->footer(
      "A dataset is described by its manifest, so that takes moments; what was read of labels and\n"
      "values is said. A file that the reader cannot open is described as far as possible.\n"
      "Exit status: 0 described, 2 usage, 3 system, 4 damaged, 5 of an unknown kind.");
  inspect_app->callback(
      [&action, command] { action = [command] { return run_inspect(*command); }; });
}

}  // namespace precache
