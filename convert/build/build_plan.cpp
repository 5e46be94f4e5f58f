// SPDX-License-Identifier: Apache-2.0
#include "convert/build/build_plan.hpp"

#include <fmt/format.h>

#include "convert/job/disk_space.hpp"
#include "convert/job/shard_formats.hpp"
#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"

namespace precache {

BuildPlan::BuildPlan(const BuildOptions& options, Source source)
    : source_(std::move(source)),
      keys_(source_.listing, source_.key_rule, options.short_keys),
      framing_(make_framing(parse_format(options.format), options.recipe.spec(), keys_.limits(),
                            source_.classes)),
      plan_(source_.listing.size(), shard_count(options),
            options.shuffle ? std::optional(options.seed) : std::nullopt) {}

std::uint64_t BuildPlan::shard_count(const BuildOptions& options) const {
  const std::uint64_t samples = source_.listing.size();
  if (options.shards > samples) {
    throw InvalidArgument(
        fmt::format("{} shards are more than the {} samples", options.shards, samples));
  }
  if (options.shards != 0) return options.shards;
  return shards_for_size(samples, framing_->record_bytes(), options.shard_size_bytes);
}

std::string BuildPlan::longest_key() const {
  for (std::size_t i = 0; i < source_.listing.size(); ++i) {
    std::string key = keys_.key(i);
    if (key.size() == keys_.limits().longest_key) return key;
  }
  return {};
}

BuildEstimate BuildPlan::preview(const BuildOptions& options) const {
  BuildEstimate preview;
  preview.samples = source_.listing.size();
  preview.classes = source_.classes;
  preview.labels = source_.listing.labels();
  preview.left_out = source_.left_out;
  preview.shards = plan_.shards();
  preview.largest_shard_samples = plan_.shard_records(0);
  preview.smallest_shard_samples = plan_.shard_records(plan_.shards() - 1);
  preview.tensor_bytes = options.recipe.spec().size_bytes();
  preview.record_bytes = framing_->record_bytes();
  if (parse_format(options.format) == Format::kTar && !keys_.limits().all_fit_ustar) {
    preview.pax_key = longest_key();
  }
  for (std::uint64_t shard = 0; shard < plan_.shards(); ++shard) {
    preview.bytes_needed =
        checked_add(preview.bytes_needed, framing_->shard_bytes(plan_.shard_records(shard)));
  }
  // The copies are there by now, so what they take counts as free, too.
  preview.bytes_unpacked = source_.unpacked_bytes();
  preview.bytes_needed = checked_add(preview.bytes_needed, preview.bytes_unpacked);
  preview.bytes_free = checked_add(free_bytes(options.out), preview.bytes_unpacked);
  std::vector<bool> used(source_.classes.size());
  for (std::size_t i = 0; i < source_.listing.size(); ++i) {
    const ListedFile file = source_.listing[i];
    preview.source_bytes += file.size;
    const auto label = static_cast<std::uint64_t>(file.label);  // -1 becomes large
    if (label < used.size()) used[label] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) preview.empty_classes.push_back(source_.classes[i]);
  }
  return preview;
}

}  // namespace precache
