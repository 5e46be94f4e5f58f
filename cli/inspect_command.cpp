// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>

#include "cli/add_option.hpp"
#include "cli/commands.hpp"
#include "cli/progress_display.hpp"
#include "cli/say.hpp"
#include "cli/shard_paths.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/convert/pictures.hpp"
#include "precache/formats/error.hpp"
#include "precache/protobuf/message_survey.hpp"
#include "precache/tools/inspect.hpp"

namespace precache {
namespace {

constexpr std::size_t kTableRows = 12;

struct InspectCommand : ShardPaths {
  InspectOptions options;
  std::filesystem::path proto;
  std::string message;
  std::uint64_t samples = 24;
  std::filesystem::path sheet;
  std::filesystem::path html;
};

/// Makes the widest columns of words narrower until a row fits the width.
void fit_columns(std::vector<std::size_t>& widths, std::size_t left_columns, std::size_t most) {
  constexpr std::size_t kNarrowest = 12;
  const auto left = std::span(widths).first(left_columns);
  while (std::accumulate(widths.begin(), widths.end(), 1 + 2 * widths.size()) > most) {
    const auto widest = std::ranges::max_element(left);
    if (widest == left.end() || *widest <= kNarrowest) return;
    --*widest;
  }
}

void print_table(const FactTable& table) {
  std::vector<std::size_t> widths(table.head.size());
  const auto measure = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], terminal::columns_of(row[i]));
    }
  };
  measure(table.head);
  for (const auto& row : table.rows) measure(row);
  if (terminal::is_terminal(STDOUT_FILENO)) {
    fit_columns(widths, table.left_columns, terminal::width(STDOUT_FILENO));
  }
  const auto line_of = [&](const std::vector<std::string>& row) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = shortened(row[i], widths[i]);
      const std::string filling(widths[i] - terminal::columns_of(cell), ' ');
      line += " " + (i < table.left_columns ? cell + filling : filling + cell) + " ";
    }
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = "\n" + terminal::styled(STDOUT_FILENO, terminal::kBold, line_of(table.head));
  for (const auto& row : table.rows) text += line_of(row);
  print_raw(text);
  if (!table.note.empty()) print_wrapped(fmt::format("  ({})", table.note));
}

void print_text(const Inspection& facts) {
  const std::string title = escaped_text("{}: {}", facts.path.string(), headline(facts));
  print_raw(terminal::wrapped(title, 0, 2, terminal::text_width(STDOUT_FILENO)) + "\n\n");
  for (const FactRow& row : fact_rows(facts)) print_row(row.title, row.text, terminal::kWidestText);
  if (facts.classes && !facts.classes->is_complete) {
    print_row("more", "--all reads every file, label and value");
  }
  for (const FactTable& table : fact_tables(facts, kTableRows)) print_table(table);
}

/// Only an earlier output of the same kind may be replaced, never a shard or a manifest.
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
    throw InvalidArgument("--proto and --message must be given together");
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
  std::fflush(stdout);  // before the messages on stderr
  write_output(command.sheet, paths, contact_sheet);
  write_output(command.html, paths, inspection_page);
  return conclude(paths);
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto command = std::make_shared<InspectCommand>();
  CLI::App* inspect_app = app.add_subcommand(
      "inspect", "Show what is in shards, written by precache or by other tools");
  add_shard_paths(*inspect_app, *command, command->options.split);
  cli::begin_group(*inspect_app, "Input");
  inspect_app->add_flag("--all", command->options.all,
                        "Read every file, label and value, not only some");
  cli::add_message_options(*inspect_app, command->proto, command->message);
  cli::begin_group(*inspect_app, "Output");
  cli::add_text(*inspect_app, "--sheet", "FILE.png", "Write a contact sheet of samples",
                command->sheet);
  cli::add_text(*inspect_app, "--html", "FILE.html",
                "Write a self-contained page with facts, samples and histograms", command->html);
  cli::add_integer(*inspect_app, "--samples", "N [24]", "Samples on the sheet and the page",
                   std::uint64_t{1}, std::uint64_t{1000}, command->samples);
  inspect_app->footer(
      "Examples:\n"
      "  precache inspect shards\n"
      "  precache inspect shards --all --html shards.html\n"
      "  precache inspect 'other/train-*.tar' --sheet samples.png --samples 100\n"
      "\n"
      "A dataset is described from its manifest, which takes milliseconds. The output says how "
      "many labels and values were read. A file that the reader cannot open is described as far as "
      "possible.\n"
      "Exit status: 0 described, 2 wrong usage, 3 system error, 4 damaged, 5 unknown kind of "
      "file.");
  inspect_app->callback(
      [&action, command] { action = [command] { return run_inspect(*command); }; });
}

}  // namespace precache
