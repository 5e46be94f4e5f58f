// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/reformat_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "convert/job/disk_space.hpp"
#include "convert/job/shard_formats.hpp"
#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kIdentityVersion = 2;  // changes when equal options give other bytes than before

Plan plan_for(const SourceSplit& split, std::uint64_t record_bytes,
              const ReformatOptions& options) {
  const std::uint64_t samples = split.shards().samples();
  if (options.shards_per_split.value_or(0) > samples) {
    throw InvalidArgument(fmt::format("{} shards are more than the {} samples of '{}'",
                                      *options.shards_per_split, samples, split.name()));
  }
  const bool keep = !options.shards_per_split && !options.shard_size_bytes;
  if (keep || samples == 0) return {split.shard_samples(), options.seed};
  return {samples,
          options.shards_per_split
              ? *options.shards_per_split
              : shards_for_size(samples, record_bytes, *options.shard_size_bytes),
          options.seed};
}

}  // namespace

ReformatPlan::ReformatPlan(const ReformatOptions& options)
    : source(open_tensor_source(options)),
      conversion(source.meaning, options),
      format(parse_format(options.format.value_or(source.format))) {
  for (const auto& split : source.splits) {
    auto framing = make_framing(format, conversion.result().spec, split->limits(), source.classes);
    Plan plan = plan_for(*split, framing->record_bytes(), options);
    splits.push_back({*split, std::move(framing), std::move(plan)});
  }
}

Manifest ReformatPlan::dataset() const {
  Manifest manifest;
  manifest.classes = source.classes;
  manifest.spec = conversion.result().spec;
  manifest.recipe = conversion.result().recipe;
  manifest.format = name(format);
  return manifest;
}

ReformatEstimate ReformatPlan::preview(const std::filesystem::path& out) const {
  ReformatEstimate preview;
  preview.classes = source.classes.size();
  preview.source_format = source.format;
  preview.source_spec = source.meaning.spec;
  preview.source_shards = source.shards;
  preview.source_bytes = source.bytes;
  preview.format = name(format);
  preview.spec = conversion.result().spec;
  preview.tensors_stay = conversion.is_copy();
  preview.bytes_free = free_bytes(out);
  for (const Split& split : splits) {
    ConvertedSplit converted{split.source.name(), split.plan.records(), split.plan.shards(),
                             split.plan.records(), 0};
    for (std::uint64_t shard = 0; shard < split.plan.shards(); ++shard) {
      const std::uint64_t records = split.plan.shard_records(shard);
      converted.smallest_shard_samples = std::min(converted.smallest_shard_samples, records);
      converted.largest_shard_samples = std::max(converted.largest_shard_samples, records);
      preview.bytes_needed = checked_add(preview.bytes_needed, split.framing->shard_bytes(records));
    }
    if (const auto labels = split.source.labels()) {
      if (!preview.labels) preview.labels = labels;
      preview.labels->smallest = std::min(preview.labels->smallest, labels->smallest);
      preview.labels->largest = std::max(preview.labels->largest, labels->largest);
    }
    preview.samples += converted.samples;
    preview.shards += converted.shards;
    preview.splits.push_back(std::move(converted));
  }
  return preview;
}

std::string ReformatPlan::identity(const ReformatOptions& options) const {
  std::vector<std::string> names;
  for (const Split& split : splits) names.push_back(split.source.name());
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  const Json json = {{"version", kIdentityVersion},
                     {"command", "convert"},
                     {"shards", source.fingerprint},
                     {"splits", names},
                     {"format", name(format)},
                     {"recipe", Json::parse(conversion.result().recipe)},
                     {"shards-per-split", or_null(options.shards_per_split)},
                     {"shard-size", or_null(options.shard_size_bytes)},
                     {"seed", or_null(options.seed)},
                     {"image-key", options.image_key},
                     {"label-key", options.label_key},
                     {"without-labels", options.without_labels}};
  return json.dump();
}

SplitEntry ReformatPlan::Split::planned_entry(const ReformatOptions& options) const {
  SplitEntry entry = source.facts();
  entry.samples = plan.records();
  if (options.seed) {
    entry.seed = *options.seed;
    entry.shuffled = true;
  }
  for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
    const std::uint64_t records = plan.shard_records(shard);
    entry.shards.push_back({{}, records, 0, 0, framing->columns(records)});
  }
  return entry;
}

bool is_planned(const SplitEntry& found, const SplitEntry& planned) {
  const auto facts = [](const SplitEntry& entry) {
    return std::tie(entry.samples, entry.skipped, entry.seed, entry.shuffled, entry.max_pixels,
                    entry.source_fingerprint);
  };
  const bool is_other_content = !found.content_fingerprint.empty() &&
                                !planned.content_fingerprint.empty() &&
                                found.content_fingerprint != planned.content_fingerprint;
  return facts(found) == facts(planned) && !is_other_content &&
         std::ranges::equal(found.shards, planned.shards, [](const auto& a, const auto& b) {
           return a.samples == b.samples && a.columns == b.columns;
         });
}

}  // namespace precache
