// SPDX-License-Identifier: Apache-2.0
#include "cli/build_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/events.hpp"
#include "cli/index_command.hpp"
#include "cli/job_command.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownSkips = 5;
constexpr std::size_t kShownReasons = 5;

std::string ignored_text(const BuildEstimate& estimate) {
  std::uint64_t total = 0;
  std::vector<std::pair<std::uint64_t, std::string>> reasons;
  for (const auto& [reason, count] : estimate.ignored) {
    total += count;
    reasons.emplace_back(count, reason);
  }
  if (total == 0) return {};
  std::ranges::stable_sort(reasons, std::greater{}, [](const auto& entry) { return entry.first; });
  std::string text;
  for (const auto& [count, reason] :
       std::span(reasons).first(std::min(kShownReasons, reasons.size()))) {
    const bool is_noun = reason.ends_with("link");
    text += fmt::format(
        "{}{}", text.empty() ? "" : ", ",
        is_noun ? human::count(count, reason) : fmt::format("{} {}", human::count(count), reason));
  }
  if (reasons.size() > kShownReasons) text += ", ...";
  return fmt::format("{} ({})", human::count(total, "file"), text);
}

double overhead_percent(std::uint64_t bytes, std::uint64_t samples, std::uint64_t tensor_bytes) {
  const double tensors = static_cast<double>(samples) * static_cast<double>(tensor_bytes);
  return tensors == 0 ? 0 : (static_cast<double>(bytes) / tensors - 1) * 100;
}

/// By name.
Json splits_json(const BuildEstimate& estimate) {
  Json splits = Json::object();
  for (const SplitEstimate& split : estimate.splits) {
    splits[split.name] = {{"samples", split.samples}, {"shards", split.shards}};
  }
  return splits;
}

Json splits_json(const BuildReport& report) {
  Json splits = Json::object();
  for (const SplitReport& split : report.splits) {
    splits[split.name] = {{"samples", split.samples},
                          {"skipped", split.skipped_count},
                          {"bytes", split.bytes},
                          {"shards", split.shards_done}};
  }
  return splits;
}

std::vector<std::string> column_texts(const BuildEstimate& estimate) {
  std::vector<std::string> columns;
  for (const NamedColumn& column : estimate.columns) columns.push_back(column.text());
  return columns;
}

Json estimate_json(const BuildEstimate& estimate, const BuildOptions& options) {
  const TensorSpec spec = options.recipe.spec();
  return {{"samples", estimate.samples},
          {"splits", splits_json(estimate)},
          {"classes", estimate.classes.size()},
          {"empty_classes", estimate.empty_classes},
          {"labels", labels_json(estimate)},
          {"left_out", estimate.ignored},
          {"source_bytes", estimate.source_bytes},
          {"format", name(options.format)},
          {"dtype", name(spec.dtype)},
          {"shape", spec.shape()},
          {"layout", name(spec.layout)},
          {"shards", estimate.shards},
          {"tensor_bytes", estimate.tensor_bytes},
          {"record_bytes", estimate.record_bytes},
          {"columns", column_texts(estimate)},
          {"pax_headers", !estimate.pax_key.empty()},
          {"bytes_needed", estimate.bytes_needed},
          {"bytes_unpacked", estimate.bytes_unpacked},
          {"bytes_free", estimate.bytes_free}};
}

std::string tensor_text(const BuildOptions& options) {
  const TensorSpec spec = options.recipe.spec();
  const auto shape = spec.shape();
  return fmt::format("{} {}x{}x{} ({})", name(spec.dtype), shape[0], shape[1], shape[2],
                     name(spec.layout));
}

/// Says what training can no longer vary.
std::string fixed_text(const Recipe& recipe) {
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

std::string turned_text(const BuildReport& report) {
  if (report.turned == 0) return {};
  return fmt::format(
      "{} rotated by EXIF; ImageFolder does not rotate {}. Use --exif ignore to match it.",
      human::count(report.turned, "image"), report.turned == 1 ? "it" : "them");
}

/// Why tar records are larger than necessary, and some readers see cut names.
std::string pax_text(const BuildEstimate& estimate) {
  if (estimate.pax_key.empty()) return {};
  constexpr std::size_t kShown = 60;
  return fmt::format(
      "keys are too long for plain tar headers, so every record gets pax headers; the longest key "
      "has {} bytes: '{}{}'",
      estimate.pax_key.size(), printable(std::string_view(estimate.pax_key).substr(0, kShown)),
      estimate.pax_key.size() > kShown ? "..." : "");
}

std::string empty_classes_text(const BuildEstimate& estimate) {
  if (estimate.empty_classes.empty()) return {};
  return fmt::format("{} without images, '{}' first",
                     human::count(estimate.empty_classes.size(), "class"),
                     estimate.empty_classes.front());
}

/// "12 tar shards of 300 to 301 samples".
std::string shards_text(const SplitEstimate& split, Format format) {
  std::string text = precache::shards_text(split.shards, format) + " of " +
                     human::count(split.smallest_shard_samples);
  if (split.largest_shard_samples != split.smallest_shard_samples) {
    text += " to " + human::count(split.largest_shard_samples);
  }
  return text + (split.largest_shard_samples == 1 ? " sample" : " samples");
}

void print_estimate_rows(const BuildEstimate& estimate, const BuildOptions& options) {
  print_row("source", fmt::format("{}, {}, {}", human::count(estimate.samples, "image"),
                                  labels_text(estimate), size_text(estimate.source_bytes)));
  print_row("ignored", ignored_text(estimate));
  print_row("warning", empty_classes_text(estimate));
  print_row("warning", pax_text(estimate));
  print_row("tensor",
            fmt::format("{}, {}", tensor_text(options), size_text(estimate.tensor_bytes)));
  print_row("columns", fmt::format("{}", fmt::join(column_texts(estimate), ", ")));
  print_row("fixed", fixed_text(options.recipe));
  print_row("record", fmt::format("{}, overhead {:.2f} %", size_text(estimate.record_bytes),
                                  overhead_percent(estimate.bytes_needed - estimate.bytes_unpacked,
                                                   estimate.samples, estimate.tensor_bytes)));
  for (const SplitEstimate& split : estimate.splits) {
    const bool is_only = estimate.splits.size() == 1;
    print_row(is_only ? "shards" : split.name,
              (is_only ? "" : human::count(split.samples, "sample") + " in ") +
                  shards_text(split, options.format));
  }
  print_disk(estimate);
}

void print_report_json(const BuildReport& report, const BuildOptions& options, double seconds) {
  Json json = {{"status", status_name(report.status)},
               {"out", options.out.string()},
               {"split", report.splits.size() == 1 ? Json(report.splits.front().name) : Json()},
               {"splits", splits_json(report)},
               {"samples", report.samples},
               {"skipped", report.skipped_count},
               {"damaged", report.damaged},
               {"turned", report.turned}};
  json.update(report_json(report, seconds));
  json.update(
      {{"images_per_second", seconds > 0 ? static_cast<double>(report.converted) / seconds : 0.0},
       {"indexes", to_json(report.indexes)},
       {"plan", estimate_json(report.estimate, options)}});
  print_json(json);
}

void print_report_rows(const BuildReport& report, const BuildOptions& options, double seconds) {
  const BuildEstimate& estimate = report.estimate;
  print_if_complete_already(report, options.out);
  for (const SplitReport& split : report.splits) {
    print_row(split.name,
              fmt::format("{} in {}, {}", human::count(split.samples, "sample"),
                          shards_text(split.shards_done, options.format), labels_text(estimate)));
  }
  print_row("warning", empty_classes_text(estimate));
  print_row("tensor", tensor_text(options));
  print_row("columns", fmt::format("{}", fmt::join(column_texts(estimate), ", ")));
  print_row("fixed", fixed_text(options.recipe));
  print_row("turned", turned_text(report));
  print_row("bytes",
            fmt::format("{}, overhead {:.2f} %", size_text(report.bytes),
                        overhead_percent(report.bytes, report.samples, estimate.tensor_bytes)));
  print_row("ignored", ignored_text(estimate));
  for (const auto& [kind, text] : index_rows(report.indexes)) {
    print_row("index", fmt::format("{}: {}", kind, text));
  }
  print_done(report, "images", seconds);
}

std::string percent_text(double percent) {
  return percent < 0.1 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.2f} %", percent);
}

void print_skipped(const BuildReport& report, const BuildOptions& options) {
  if (report.skipped.empty()) return;
  const double percent = 100.0 * static_cast<double>(report.skipped_count) /
                         static_cast<double>(report.estimate.samples);
  const bool listed = report.status == JobStatus::kComplete ||
                      (report.status == JobStatus::kTooManyBad && options.step != JobStep::kPart);
  say("precache: {} skipped ({}){}:\n", human::count(report.skipped_count, "sample"),
      percent_text(percent),
      listed ? fmt::format(", listed in '{}'", (options.out / "skipped.tsv").string()) : "");
  for (std::size_t i = 0; i < std::min(kShownSkips, report.skipped.size()); ++i) {
    say("  {}: {}\n", report.skipped[i].path, report.skipped[i].reason);
  }
  if (report.skipped_count > kShownSkips) say("  ...\n");
}

ExitCode fail_for_bad(const BuildReport& report, const BuildOptions& options) {
  const std::string message =
      options.fail_on_bad
          ? "the build stopped at a bad sample, because of --on-error fail"
          : fmt::format("too many bad samples: more than {} % of {}", options.max_bad_percent,
                        human::count(report.estimate.samples));
  const std::string hint = fmt::format(
      "{}. To continue without the bad samples, run the same command{} with {}. Or "
      "repair the files and start over {}.",
      shards_done_text(report), options.overwrite ? " without --overwrite" : "",
      options.fail_on_bad ? "--on-error skip" : "a higher --max-bad",
      options.step == JobStep::kWhole ? "with --overwrite" : "in an empty OUT");
  return fail(ExitCode::kTooManyBad, {"TooManyBadImages", message, hint});
}

void say_prepared(const BuildReport& report, const BuildOptions& options) {
  const auto [index, count] = options.share;
  if (count != 0) {
    say("precache: share {}/{} of the source is {}\n"
        "  After all shares are listed, run the same command with --prepare alone.\n",
        index, count, report.listed ? "listed" : "already part of the plan");
    return;
  }
  say("precache: {}\n"
      "  Run the same command with --part I/N instead of --prepare, for I from 0 to N-1.\n",
      report.listed ? "the plan is written"
                    : "the plan was written before, and the source was not listed again");
}

}  // namespace

void print_estimate(const BuildEstimate& estimate, const BuildOptions& options, bool json) {
  if (json) {
    print_json(estimate_json(estimate, options));
  } else {
    print_estimate_rows(estimate, options);
  }
}

void print_report(const BuildReport& report, const BuildOptions& options, double seconds,
                  bool json) {
  if (json) {
    print_report_json(report, options, seconds);
  } else if (report.status == JobStatus::kPrepared) {
    if (options.share.count == 0) print_estimate_rows(report.estimate, options);
  } else if (report.status != JobStatus::kTooManyBad && report.status != JobStatus::kInterrupted) {
    print_report_rows(report, options, seconds);
  }
  std::fflush(stdout);  // before the messages on stderr
  print_skipped(report, options);
  if (!report.estimate.pax_key.empty()) {
    say("precache: warning: {}\n"
        "  DALI without an index, wids and cpio see cut names. Use --keys short for keys that "
        "fit.\n",
        pax_text(report.estimate));
  }
  say_missing(report.indexes);
}

ExitCode conclude(const BuildReport& report, const BuildOptions& options) {
  switch (report.status) {
    case JobStatus::kComplete:
    case JobStatus::kAlreadyComplete:
      break;
    case JobStatus::kPrepared:
      say_prepared(report, options);
      break;
    case JobStatus::kPartDone:
      say("precache: part {}/{} is done\n"
          "  After all parts are done, run the same command with --finish instead of --part.\n",
          options.share.index, options.share.count);
      if (report.listed) {
        say("precache: this part listed the source while the others waited\n"
            "  Run --prepare once before the parts to avoid this.\n");
      }
      break;
    case JobStatus::kTooManyBad:
      return fail_for_bad(report, options);
    case JobStatus::kInterrupted:
      say_interrupted(report, options.overwrite);
      break;
  }
  return ExitCode::kDone;
}

}  // namespace precache
