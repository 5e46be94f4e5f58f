// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/inspect/label_counts.hpp"

#include <map>

namespace precache {
namespace {

// Each label of a tar or TFRecord lies on a page of its own: a disk that turns takes some seconds
// for so many, a solid one a tenth of a second.
constexpr std::uint64_t kLabelsRead = 1000;
constexpr std::size_t kMostClasses = 100'000;  // what has more is no class

class Counter {
 public:
  void add(std::int64_t label) {
    ++facts_.labels_read;
    if (label == -1) {
      ++facts_.unlabelled;
    } else if (const auto known = counts_.find(label); known != counts_.end()) {
      ++known->second;
    } else if (counts_.size() < kMostClasses) {
      counts_.emplace(label, 1);
    } else {
      ++facts_.uncounted;
    }
  }

  [[nodiscard]] ClassFacts finish(const std::vector<std::string>& names) && {
    facts_.named = names.size();
    for (std::size_t i = 0; i < names.size(); ++i)
      counts_.try_emplace(static_cast<std::int64_t>(i));
    for (const auto& [label, samples] : counts_) {
      const auto index = static_cast<std::uint64_t>(label);
      facts_.counts.push_back({label, index < names.size() ? names[index] : "", samples});
    }
    return std::move(facts_);
  }

 private:
  ClassFacts facts_;
  std::map<std::int64_t, std::uint64_t> counts_;
};

bool are_cheap(const ShardIndex& index) {
  return !index.places.empty() || index.columns.label.type == "int64" ||
         index.columns.label.type.empty();
}

}  // namespace

ClassFacts count_labels(const ShardSet& shards, bool all, InspectProgress& progress) {
  bool cheap = true;
  for (std::size_t i = 0; i < shards.shard_count(); ++i)
    cheap = cheap && are_cheap(shards.index(i));
  const std::uint64_t total = shards.samples();
  Counter counter;
  const auto read = [&](std::size_t shard, std::uint64_t row, const MappedShard& mapped) {
    counter.add(shards.values(shard).label(mapped.bytes(), row));
    ++progress.reads_done;
  };
  const bool reads_all = all || cheap || total <= kLabelsRead;
  progress.reads_planned += reads_all ? total : kLabelsRead;
  if (reads_all) {
    for (std::size_t shard = 0; shard < shards.shard_count(); ++shard) {
      if (shards.index(shard).samples == 0) continue;
      const auto mapped = shards.map(shard);
      for (std::uint64_t row = 0; row < shards.index(shard).samples; ++row) {
        read(shard, row, *mapped);
      }
      mapped->check();
    }
  } else {
    for (const std::uint64_t sample : spread(total, kLabelsRead)) {
      const auto place = shards.locate(sample);
      const auto mapped = shards.map(place.shard);
      read(place.shard, place.row, *mapped);
      mapped->check();
    }
  }
  ClassFacts facts = std::move(counter).finish(shards.classes());
  facts.is_complete = facts.labels_read == total;
  return facts;
}

}  // namespace precache
