// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/inspect/inspect_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/shard/file_kind.hpp"
#include "precache/formats/usable_threads.hpp"
#include "reader/tools/inspect/value_statistics.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kValueSamples = 64;
constexpr std::uint64_t kValueBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kEncodedSamples = 1000;
constexpr std::uint64_t kFirstKeys = 5;
// Each label of a tar or TFRecord is on another page: reading so many takes a hard disk some
// seconds, and a solid-state disk a tenth of a second.
constexpr std::uint64_t kLabelsRead = 1000;
constexpr std::size_t kMostClasses = 100'000;  // with more different labels, they are not classes

void describe_access(const ShardSet& set, Inspection& facts) {
  AccessFacts& access = facts.access;
  bool is_regular = true;  // strides may differ between shards: a view is of one shard
  bool is_one_stride = true;
  std::uint64_t bits = 0;  // of all offsets: the lowest divides them all
  for (std::size_t i = 0; i < set.shard_count(); ++i) {
    const ShardIndex& index = set.index(i);
    if (index.samples == 0) continue;
    for (const SampleLocation& place : index.places) bits |= place.payload;
    if (index.places.empty()) {
      bits |= index.columns->image.base;
      if (index.samples > 1) bits |= index.columns->image.stride;
    }
    const auto& stride = set.stride(i);
    is_regular = is_regular && stride;
    is_one_stride = is_one_stride && access.stride_bytes.value_or(stride.value_or(0)) == stride;
    access.stride_bytes = stride;
  }
  if (!is_regular || !is_one_stride) access.stride_bytes.reset();
  if (bits != 0) access.alignment_bytes = bits & (~bits + 1);
  if (!set.spec()) {
    access.reason = set.unsupported_reason();
    facts.unsupported_reasons.push_back(set.unsupported_reason());
    return;
  }
  const std::size_t element = size_bytes(set.spec()->dtype);
  access.batches = AccessFacts::Batches::kGathered;
  if (access.alignment_bytes.value_or(element) < element) {
    access.reason =
        fmt::format("{} values are not aligned: samples are copied", name(set.spec()->dtype));
  } else if (!is_regular) {
    access.reason = "samples are not at equal distances: each is a view, batches are copied";
  } else {
    access.batches = AccessFacts::Batches::kViews;
    access.reason = "all records have the same size";
  }
}

/// True if labels are in a table, or next to each other in HDF5.
bool has_cheap_labels(const ShardSet& set) {
  for (std::size_t i = 0; i < set.shard_count(); ++i) {
    const ShardIndex& index = set.index(i);
    const std::string& type = index.columns->label.type;
    if (index.places.empty() && type != "int64" && !type.empty()) return false;
  }
  return true;
}

/// Calls `read(mapped, shard, row)` for these samples, in ascending order; for all if `numbers` is
/// empty. Throws CorruptData if a shard changed meanwhile.
template <typename Read>
void each_sample(const ShardSet& set, const std::vector<std::uint64_t>& numbers,
                 InspectProgress& progress, const Read& read) {
  const std::uint64_t count = numbers.empty() ? set.samples() : numbers.size();
  progress.reads_planned += count;
  std::shared_ptr<const MappedShard> mapped;
  std::size_t shard = set.shard_count();  // none
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto place = set.locate(numbers.empty() ? i : numbers[i]);
    if (place.shard != shard) {
      if (mapped != nullptr) mapped->check();
      shard = place.shard;
      mapped = set.map(shard);
    }
    read(*mapped, shard, place.row);
    ++progress.reads_done;
  }
  if (mapped != nullptr) mapped->check();
}

/// Reads all labels if that is cheap, if there are few, or if `all`; otherwise some, well spread.
ClassFacts count_labels(const ShardSet& set, bool all, InspectProgress& progress) {
  const bool reads_all = all || set.samples() <= kLabelsRead || has_cheap_labels(set);
  ClassFacts facts;
  std::map<std::int64_t, std::uint64_t> counts;
  each_sample(set, reads_all ? std::vector<std::uint64_t>() : spread(set.samples(), kLabelsRead),
              progress, [&](const MappedShard& mapped, std::size_t shard, std::uint64_t row) {
                const std::int64_t label = set.values(shard).label(mapped.bytes(), row);
                ++facts.labels_read;
                if (label == -1) {
                  ++facts.unlabelled;
                } else if (counts.size() < kMostClasses || counts.contains(label)) {
                  ++counts[label];
                } else {
                  ++facts.uncounted;
                }
              });
  const std::vector<std::string>& names = set.classes();
  facts.named = names.size();
  for (std::size_t i = 0; i < names.size(); ++i) counts.try_emplace(static_cast<std::int64_t>(i));
  for (const auto& [label, samples] : counts) {
    const auto index = static_cast<std::uint64_t>(label);
    facts.counts.push_back({label, index < names.size() ? names[index] : "", samples});
  }
  facts.is_complete = facts.labels_read == set.samples();
  return facts;
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
  each_sample(set, samples, progress,
              [&](const MappedShard& mapped, std::size_t shard, std::uint64_t row) {
                const auto [offset, bytes] = set.values(shard).payload(row);
                const auto kind = image_file_kind(mapped.bytes().subspan(offset, bytes));
                ++encoded.kinds[kind.empty() ? "other" : std::string(kind)];
                encoded.bytes.add(bytes);
              });
  encoded.samples_read = samples.size();
  encoded.is_complete = samples.size() == set.samples() && facts.files_read == facts.files;
  facts.encoded = std::move(encoded);
}

}  // namespace

void describe_samples(const ShardSet& set, const InspectOptions& options, InspectProgress& progress,
                      Inspection& facts) {
  describe_access(set, facts);
  const std::uint64_t total = set.samples();
  for (std::uint64_t i = 0; i < std::min(total, kFirstKeys); ++i) {
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
