// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/inspect/inspect_samples.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/shard/file_kind.hpp"
#include "precache/formats/usable_threads.hpp"
#include "reader/tools/inspect/label_counts.hpp"
#include "reader/tools/inspect/value_statistics.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kValueSamples = 64;
constexpr std::uint64_t kValueBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kEncodedSamples = 1000;

void describe_batches(const ShardSet& set, bool is_regular, Inspection& facts) {
  AccessFacts& access = facts.access;
  if (!set.spec()) {
    access.reason = set.obstacle();
    facts.obstacles.push_back(set.obstacle());
    return;
  }
  const std::size_t element = size_bytes(set.spec()->dtype);
  if (access.alignment_bytes.value_or(element) < element) {
    access.batches = AccessFacts::Batches::kGathered;
    access.reason =
        fmt::format("{} values lie at odd addresses: samples are copied", name(set.spec()->dtype));
  } else if (!is_regular) {
    access.batches = AccessFacts::Batches::kGathered;
    access.reason = "samples do not lie at equal distances: each is a view, batches are copied";
  } else {
    access.batches = AccessFacts::Batches::kViews;
    access.reason = "equal records: neighbours are one strided view";
  }
}

void describe_access(const ShardSet& set, Inspection& facts) {
  AccessFacts& access = facts.access;
  bool is_regular = true;  // a view never reaches beyond its shard, so strides may differ
  bool is_one_stride = true;
  std::uint64_t bits = 0;  // of all offsets: the lowest divides them all
  for (std::size_t i = 0; i < set.shard_count(); ++i) {
    const ShardIndex& index = set.index(i);
    if (index.samples == 0) continue;
    for (const SampleLocation& place : index.places) bits |= place.payload;
    if (index.places.empty()) {
      bits |= index.columns.image.base;
      if (index.samples > 1) bits |= index.columns.image.stride;
    }
    const auto& stride = set.stride(i);
    is_regular = is_regular && stride;
    is_one_stride = is_one_stride && access.stride_bytes.value_or(stride.value_or(0)) == stride;
    access.stride_bytes = stride;
  }
  if (!is_regular || !is_one_stride) access.stride_bytes.reset();
  if (bits != 0) access.alignment_bytes = bits & (~bits + 1);
  describe_batches(set, is_regular, facts);
}

void read_values(const ShardSet& set, bool all, InspectProgress& progress, Inspection& facts) {
  const std::uint64_t tensor_bytes = set.spec()->size_bytes();
  if (tensor_bytes == 0) return;
  const std::uint64_t wanted =
      std::clamp<std::uint64_t>(kValueBytes / tensor_bytes, 1, kValueSamples);
  const auto samples = spread(set.samples(), all ? set.samples() : wanted);
  const std::uint64_t passes = set.spec()->dtype == DType::kUint8 ? 1 : 2;  // of measure_values
  progress.reads_planned += samples.size() * passes;
  const auto tensor = [&](std::uint64_t i) {
    ++progress.reads_done;
    const auto place = set.locate(samples[i]);
    auto mapped = set.map(place.shard);
    mapped->check();
    const auto [offset, bytes] = set.values(place.shard).payload(place.row);
    const auto view = mapped->bytes().subspan(offset, bytes);
    return HeldTensor{view, std::move(mapped)};
  };
  facts.values = measure_values(*set.spec(), samples.size(), tensor, usable_threads());
  facts.values->is_complete = samples.size() == set.samples() && facts.files_read == facts.files;
}

void read_encoded(const ShardSet& set, bool all, InspectProgress& progress, Inspection& facts) {
  EncodedFacts encoded;
  const auto samples = spread(set.samples(), all ? set.samples() : kEncodedSamples);
  progress.reads_planned += samples.size();
  for (const std::uint64_t sample : samples) {
    ++progress.reads_done;
    const auto place = set.locate(sample);
    const auto mapped = set.map(place.shard);
    const auto [offset, bytes] = set.values(place.shard).payload(place.row);
    const auto kind = image_file_kind(mapped->bytes().subspan(offset, bytes));
    ++encoded.kinds[kind.empty() ? "other" : std::string(kind)];
    encoded.bytes.add(bytes);
    mapped->check();
  }
  encoded.samples_read = samples.size();
  encoded.is_complete = samples.size() == set.samples() && facts.files_read == facts.files;
  facts.encoded = std::move(encoded);
}

}  // namespace

void describe_samples(const ShardSet& set, const InspectOptions& options, InspectProgress& progress,
                      Inspection& facts) {
  describe_access(set, facts);
  const std::uint64_t total = set.samples();
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(total, options.first_keys); ++i) {
    const auto place = set.locate(i);
    const auto mapped = set.map(place.shard);
    facts.first_keys.push_back(set.values(place.shard).key(mapped->bytes(), place.row));
    mapped->check();
  }
  if (total == 0) return;
  facts.classes = count_labels(set, options.all, progress);
  facts.classes->is_complete &= facts.files_read == facts.files;
  if (set.spec()) {
    read_values(set, options.all, progress, facts);
  } else {
    read_encoded(set, options.all, progress, facts);
  }
}

}  // namespace precache
