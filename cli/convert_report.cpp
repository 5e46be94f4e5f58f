// SPDX-License-Identifier: Apache-2.0
#include "cli/convert_report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/complete_text.hpp"
#include "cli/labels_text.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

void print_row(std::string_view title, const std::string& text) {
  print("{:<9} {}\n", title, text);
}

Json spec_json(Format format, const TensorSpec& spec) {
  return {{"format", name(format)},
          {"dtype", name(spec.dtype)},
          {"shape", spec.shape()},
          {"layout", name(spec.layout)}};
}

Json preview_json(const ReformatEstimate& preview) {
  Json splits = Json::object();
  for (const ConvertedSplit& split : preview.splits) {
    splits[split.name] = {{"samples", split.samples}, {"shards", split.shards}};
  }
  Json source = spec_json(preview.source_format, preview.source_spec);
  source["shards"] = preview.source_shards;
  source["bytes"] = preview.source_bytes;
  Json json = {{"source", std::move(source)}};
  json.update(spec_json(preview.format, preview.spec));
  json.update({{"samples", preview.samples},
               {"classes", preview.classes},
               {"labels", labels_json(preview.labels)},
               {"splits", std::move(splits)},
               {"shards", preview.shards},
               {"tensors_stay", preview.tensors_stay},
               {"bytes_needed", preview.bytes_needed},
               {"bytes_free", preview.bytes_free}});
  return json;
}

void print_tensors(const ReformatEstimate& preview) {
  print_row("from", fmt::format("{}, {}", name(preview.source_format), preview.source_spec.text()));
  print_row("to", fmt::format("{}, {}{}", name(preview.format), preview.spec.text(),
                              preview.tensors_stay ? ", tensors copied as they are" : ""));
}

std::string shards_text(const ReformatEstimate& preview, const ConvertedSplit& split) {
  return fmt::format("{} in {}", human::count(split.samples, "sample"),
                     human::count(split.shards, fmt::format("{} shard", name(preview.format))));
}

Json preview_json(const PackEstimate& preview) {
  return {{"samples", preview.samples},
          {"classes", preview.classes},
          {"labels", labels_json(preview.labels)},
          {"source_bytes", preview.source_bytes},
          {"shards", preview.shards},
          {"bytes_needed", preview.bytes_needed},
          {"bytes_unpacked", preview.bytes_unpacked},
          {"bytes_free", preview.bytes_free}};
}

void print_disk(std::uint64_t needed, std::uint64_t unpacked, std::uint64_t free) {
  const std::string copies =
      unpacked == 0 ? "" : fmt::format(" ({} to unpack the source)", size_text(unpacked));
  print_row("disk", fmt::format("{} needed{}, {} free{}", size_text(needed), copies,
                                size_text(free), needed > free ? ": NOT ENOUGH" : ""));
}

void print_done(std::uint64_t resumed, std::uint64_t converted, const char* noun, double seconds) {
  if (resumed != 0) {
    print_row("resumed", human::count(resumed, "shard") + " of an earlier run");
  }
  if (converted != 0) {
    print_row("time", fmt::format("{}, {:.0f} {}/s", human::clock(seconds),
                                  static_cast<double>(converted) / seconds, noun));
  }
}

void say_interrupted(std::uint64_t done, std::uint64_t planned, bool overwrite) {
  say("precache: interrupted\n  {} of {} shards are complete; run the same command{} again to "
      "continue.\n",
      done, planned, overwrite ? " without --overwrite" : "");
}

}  // namespace

void print_preview(const ReformatEstimate& preview, bool json) {
  if (json) {
    print_json(preview_json(preview));
    return;
  }
  print_row("source", fmt::format("{} in {}, {}, {}", human::count(preview.samples, "sample"),
                                  human::count(preview.source_shards, "shard"),
                                  labels_text(preview.classes, preview.labels),
                                  size_text(preview.source_bytes)));
  print_tensors(preview);
  for (const ConvertedSplit& split : preview.splits) {
    print_row(split.name, fmt::format("{} of {} to {}", shards_text(preview, split),
                                      human::count(split.smallest_shard_samples),
                                      human::count(split.largest_shard_samples)));
  }
  print_disk(preview.bytes_needed, 0, preview.bytes_free);
}

void print_report(const ReformatReport& report, const ReformatOptions& options, double seconds,
                  bool json) {
  const ReformatEstimate& preview = report.preview;
  const bool is_complete = report.status != JobStatus::kInterrupted;
  if (json) {
    const Json summary = {{"status", is_complete ? "complete" : "interrupted"},
                          {"out", options.out.string()},
                          {"bytes", report.bytes},
                          {"shards_done", report.shards_done},
                          {"shards_resumed", report.shards_resumed},
                          {"converted", report.converted},
                          {"seconds", seconds},
                          {"plan", preview_json(preview)}};
    print_json(summary);
  } else if (is_complete) {
    if (report.status == JobStatus::kAlreadyComplete) {
      print("{}\n", complete_text(options.out, report.compared));
    }
    for (const ConvertedSplit& split : preview.splits) {
      print_row(split.name, shards_text(preview, split));
    }
    print_tensors(preview);
    print_row("bytes", size_text(report.bytes));
    const bool resumed = report.status == JobStatus::kComplete;
    print_done(resumed ? report.shards_resumed : 0, report.converted, "samples", seconds);
  }
  std::fflush(stdout);  // before what follows on stderr
  if (!is_complete) say_interrupted(report.shards_done, preview.shards, options.overwrite);
}

void print_preview(const PackEstimate& preview, bool json) {
  if (json) {
    print_json(preview_json(preview));
    return;
  }
  print_row("source", fmt::format("{}, {}, {}", human::count(preview.samples, "encoded image"),
                                  labels_text(preview.classes, preview.labels),
                                  size_text(preview.source_bytes)));
  print_row("shards", fmt::format("{} of {} to {} images", human::count(preview.shards),
                                  human::count(preview.smallest_shard_samples),
                                  human::count(preview.largest_shard_samples)));
  print_disk(preview.bytes_needed, preview.bytes_unpacked, preview.bytes_free);
}

void print_report(const PackReport& report, const PackOptions& options, double seconds, bool json) {
  const bool is_complete = report.status != JobStatus::kInterrupted;
  if (json) {
    const Json summary = {{"status", is_complete ? "complete" : "interrupted"},
                          {"out", options.out.string()},
                          {"split", options.split},
                          {"samples", report.samples},
                          {"skipped", report.skipped.size()},
                          {"bytes", report.bytes},
                          {"shards_done", report.shards_done},
                          {"shards_resumed", report.shards_resumed},
                          {"converted", report.converted},
                          {"seconds", seconds},
                          {"plan", preview_json(report.preview)}};
    print_json(summary);
  } else if (is_complete) {
    if (report.status == JobStatus::kAlreadyComplete) {
      print("{}\n", complete_text(options.out, report.compared));
    }
    print_row(
        options.split,
        fmt::format("{} in {}, {}", human::count(report.samples, "encoded image"),
                    human::count(report.shards_done, fmt::format("{} shard", name(options.format))),
                    labels_text(report.preview.classes, report.preview.labels)));
    print_row("bytes", size_text(report.bytes));
    const bool resumed = report.status == JobStatus::kComplete;
    print_done(resumed ? report.shards_resumed : 0, report.converted, "images", seconds);
  }
  std::fflush(stdout);  // before what follows on stderr
  if (!report.skipped.empty()) {
    say("precache: {} skipped, '{}' first: {}\n", human::count(report.skipped.size(), "image"),
        report.skipped.front().path, report.skipped.front().reason);
    if (is_complete) say("  All are listed in '{}'.\n", (options.out / "skipped.tsv").string());
  }
  if (!is_complete) say_interrupted(report.shards_done, report.preview.shards, options.overwrite);
}

}  // namespace precache
