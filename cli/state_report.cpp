// SPDX-License-Identifier: Apache-2.0
#include "cli/state_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/say.hpp"
#include "cli/terminal.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/convert/job_state.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

const std::string kEmptyLine = "\r\x1b[K";  // wipes what a terminal shows on this line

bool is_done(const JobState& state) {
  return state.phase == JobPhase::kComplete || state.phase == JobPhase::kPartsDone;
}

/// The numbers of the missing shards, with the name of their split if there are several.
std::string missing_text(const JobState& state) {
  std::string text;
  for (const SplitState& split : state.splits) {
    if (split.missing_shards.empty()) continue;
    if (!text.empty()) text += "; ";
    if (state.splits.size() > 1) text += split.name + " ";
    text += ranges_text(split.missing_shards);
  }
  return text;
}

Json to_json(const SplitState& split) {
  return {{"samples", split.samples},
          {"shards", split.shards},
          {"shards_done", split.shards_done},
          {"shards_missing", split.missing_shards.size()},
          {"missing_shards", ranges_text(split.missing_shards)}};
}

Json to_json(const JobState& state, const StateRequest& request) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  Json splits = Json::object();
  for (const SplitState& split : state.splits) splits[split.name] = to_json(split);
  return {{"status", name(state.phase)},
          {"out", request.out.string()},
          {"split", request.split.empty() ? Json() : Json(request.split)},
          {"samples", state.samples},
          {"shards", state.shards},
          {"shards_done", state.shards_done},
          {"shards_missing", state.shards - state.shards_done},
          {"missing_shards", missing_text(state)},
          {"splits", std::move(splits)},
          {"parts", state.parts},
          {"parts_missing", state.missing_parts.size()},
          {"missing_parts", ranges_text(state.missing_parts)},
          {"samples_per_second", or_null(state.samples_per_second)},
          {"seconds_left", or_null(state.seconds_left)},
          {"seconds_since_last", or_null(state.seconds_since_last)}};
}

std::string progress_text(std::uint64_t done, std::uint64_t shards) {
  const double share =
      shards == 0 ? 0 : 100.0 * static_cast<double>(done) / static_cast<double>(shards);
  return fmt::format("{} of {} done ({:.0f} %)", human::count(done), human::count(shards, "shard"),
                     share);
}

std::string rate_text(const JobState& state) {
  if (!state.samples_per_second) return {};
  return fmt::format("{:.0f} images/s, {} left", *state.samples_per_second,
                     human::clock(state.seconds_left.value_or(0)));
}

std::string last_shard_text(const JobState& state) {
  if (!state.seconds_since_last) return {};
  return fmt::format("last shard {} ago", human::clock(*state.seconds_since_last));
}

std::string joined(std::initializer_list<std::string> texts) {
  std::string all;
  for (const std::string& text : texts) {
    if (!text.empty()) all += (all.empty() ? "" : ", ") + text;
  }
  return all;
}

void print_rows(const JobState& state, const StateRequest& request) {
  print_row("status", request.split.empty()
                          ? std::string(name(state.phase))
                          : fmt::format("{}, {}", request.split, name(state.phase)));
  if (state.phase == JobPhase::kNotPrepared) return;
  print_row("shards", joined({progress_text(state.shards_done, state.shards),
                              is_done(state) ? "" : last_shard_text(state)}));
  if (state.splits.size() > 1) {
    for (const SplitState& split : state.splits) {
      print_row(split.name, progress_text(split.shards_done, split.shards));
    }
  }
  if (is_done(state)) return;
  print_row("rate", rate_text(state));
  if (state.parts == 0) return;
  print_row("missing",
            fmt::format("{} of {}: {}", human::count(state.missing_parts.size()),
                        human::count(state.parts, "part"), ranges_text(state.missing_parts)));
}

/// One line that a terminal replaces; lines one after another elsewhere.
void print_watch_line(const JobState& state) {
  const std::string line = joined(
      {fmt::format("{}: {}", name(state.phase), progress_text(state.shards_done, state.shards)),
       rate_text(state), last_shard_text(state)});
  if (terminal::is_terminal(STDOUT_FILENO)) {
    const std::size_t room = terminal::width(STDOUT_FILENO) - 1;  // the last column: the cursor
    print_raw(kEmptyLine + line.substr(0, room));
  } else {
    print_raw(line + "\n");
  }
  std::fflush(stdout);
}

}  // namespace

ExitCode report_state(const StateRequest& request) {
  JobState state = job_state(request.out, request.split, request.parts);
  while (request.watch && !is_done(state)) {
    if (request.json) {
      print_json(to_json(state, request));
      std::fflush(stdout);
    } else {
      print_watch_line(state);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(request.watch_seconds));
    state = job_state(request.out, request.split, request.parts);
  }
  if (request.watch && !request.json && terminal::is_terminal(STDOUT_FILENO)) print_raw(kEmptyLine);
  if (request.json) {
    print_json(to_json(state, request));
  } else {
    print_rows(state, request);
  }
  return ExitCode::kDone;
}

}  // namespace precache
