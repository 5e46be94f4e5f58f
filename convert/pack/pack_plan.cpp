// SPDX-License-Identifier: Apache-2.0
#include "convert/pack/pack_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/build/labelling_identity.hpp"
#include "convert/job/disk_space.hpp"
#include "convert/source/open_source.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/shard/encoded_shard.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr int kIdentityVersion = 3;  // changes when equal options give other bytes than before

constexpr std::size_t kLongestImageName = 16;

Source only_encoded(Source source) {
  for (const SourceShard& shard : source.shards) {
    if (shard.form.kind != SampleForm::Kind::kArray) continue;
    throw Unsupported(
        fmt::format("'{}' holds arrays of pixels, no encoded images", shard.given.path.string()),
        "Leave out --keep-encoded to convert tensors; precache build takes arrays, too.");
  }
  return source;
}

Format checked_format(const PackOptions& options) {
  const Format format = parse_format(options.format);
  const std::string& name = options.image_name;
  if (name.empty()) return format;
  if (format != Format::kTar) {
    throw InvalidArgument(
        "--image-name applies only to --format tar",
        "TFRecord and HDF5 files keep all images in one feature or dataset anyway.");
  }
  const bool is_plain = name.size() <= kLongestImageName && std::ranges::all_of(name, [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                        });
  if (is_plain && name != "cls" && name != "npy") return format;
  throw InvalidArgument(
      fmt::format("'{}' cannot be the name of all images", name),
      "--image-name takes 1 to 16 letters a-z and digits, other than cls and npy. jpg suits "
      "readers that decode by content.");
}

}  // namespace

PackPlan::PackPlan(const PackOptions& options, Source source)
    : format_(checked_format(options)),
      source_(only_encoded(std::move(source))),
      keys_(source_.listing, source_.key_rule),
      overhead_(encoded_overhead_bytes(format_, keys_.limits())),
      plan_(make_plan(options)) {}

/// Which image goes to which shard: by number, or as long as a shard is below the size asked for.
Plan PackPlan::make_plan(const PackOptions& options) const {
  const std::uint64_t samples = listing().size();
  if (options.shards > samples) {
    throw InvalidArgument(
        fmt::format("{} shards are more than the {} samples", options.shards, samples));
  }
  if (options.shards != 0) return {samples, options.shards, options.seed};
  const Plan order(samples, 1, options.seed);
  std::vector<std::uint64_t> shards{0};
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t record = checked_add(listing()[order.record(0, i).sample].size, overhead_);
    if (shards.back() != 0 && checked_add(bytes, record) > options.shard_size_bytes) {
      shards.push_back(0);
      bytes = 0;
    }
    bytes += record;
    ++shards.back();
  }
  return {shards, options.seed};
}

std::uint64_t PackPlan::image_bytes(std::uint64_t shard) const {
  std::uint64_t bytes = 0;
  for (std::uint64_t slot = 0; slot < plan_.shard_records(shard); ++slot) {
    bytes = checked_add(bytes, listing()[plan_.record(shard, slot).sample].size);
  }
  return bytes;
}

std::uint64_t PackPlan::shard_bytes(std::uint64_t shard) const {
  return checked_add(image_bytes(shard), checked_mul(plan_.shard_records(shard), overhead_));
}

PackEstimate PackPlan::preview(const PackOptions& options) const {
  PackEstimate preview;
  preview.samples = plan_.records();
  preview.classes = source_.classes.size();
  preview.labels = source_.listing.labels();
  preview.shards = plan_.shards();
  preview.smallest_shard_samples = plan_.records();
  for (std::uint64_t shard = 0; shard < plan_.shards(); ++shard) {
    const std::uint64_t records = plan_.shard_records(shard);
    preview.smallest_shard_samples = std::min(preview.smallest_shard_samples, records);
    preview.largest_shard_samples = std::max(preview.largest_shard_samples, records);
    preview.source_bytes += image_bytes(shard);
    preview.bytes_needed = checked_add(preview.bytes_needed, shard_bytes(shard));
  }
  // The copies are there by now, so what they take counts as free, too.
  preview.bytes_unpacked = source_.unpacked_bytes();
  preview.bytes_needed = checked_add(preview.bytes_needed, preview.bytes_unpacked);
  preview.bytes_free = checked_add(free_bytes(options.out), preview.bytes_unpacked);
  return preview;
}

Source list_source(const PackOptions& options, Unpacker& unpacker) {
  return open_source(
      options.source,
      parse_labelling(options.labels, options.classes, options.image_key, options.label_key),
      unpacker, options.helper);
}

std::string identity_of(const PackOptions& options) {
  using Json = nlohmann::ordered_json;
  Json json = {{"version", kIdentityVersion},
               {"command", "convert --keep-encoded"},
               {"format", options.format},
               {"image-name", options.image_name},
               {"shards", options.shards},
               {"shard-size", options.shards == 0 ? options.shard_size_bytes : 0},
               {"seed", options.seed ? Json(*options.seed) : Json()}};
  json.update(
      labelling_identity(options.labels, options.classes, options.image_key, options.label_key));
  return json.dump();
}

}  // namespace precache
