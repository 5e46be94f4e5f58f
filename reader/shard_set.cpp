// SPDX-License-Identifier: Apache-2.0
#include "reader/shard_set.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include "formats/base/checked.hpp"
#include "formats/tar/webdataset.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostOpenShards = 1024;

std::set<std::string> names_of(const std::vector<ShardSet::Shard>& shards) {
  std::set<std::string> names;
  for (const ShardSet::Shard& shard : shards) {
    names.insert(shard.index.label_names.begin(), shard.index.label_names.end());
  }
  return names;
}

std::optional<std::int64_t> as_integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

bool are_integers(const std::set<std::string>& names) {
  return std::ranges::all_of(names, [](const auto& name) { return as_integer(name).has_value(); });
}

std::size_t default_open_shards() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, kMostOpenShards);
}

}  // namespace

ShardSet::ShardSet(std::vector<Shard> shards, std::vector<std::string> classes,
                   const OpenOptions& options)
    : shards_(std::move(shards)),
      classes_(std::move(classes)),
      options_(options),
      entries_(shards_.size()) {
  if (options_.max_open_shards == 0) options_.max_open_shards = default_open_shards();
  drop_captions();
  note_missing_labels();
  number_names();
  values_.reserve(shards_.size());
  first_samples_.reserve(shards_.size() + 1);
  first_samples_.push_back(0);
  const Shard* speaker = nullptr;  // the first shard with samples gives the spec
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const Shard& shard = shards_[i];
    entries_[i].first_state = shard.state;
    values_.emplace_back(shard.index, shard.path);
    first_samples_.push_back(checked_add(first_samples_.back(), shard.index.samples));
    if (speaker == nullptr || speaker->index.samples == 0) {
      speaker = &shard;
      spec_ = shard.index.spec;
      obstacle_ = shard.index.obstacle;
    } else if (shard.index.samples != 0 && spec_ && shard.index.spec != spec_) {
      obstacle_ =
          shard.index.spec
              ? fmt::format("its tensors are {} in '{}' and {} in '{}'", spec_->text(),
                            speaker->path.string(), shard.index.spec->text(), shard.path.string())
              : fmt::format("'{}': {}", shard.path.string(), shard.index.obstacle);
      spec_.reset();
    }
  }
}

void ShardSet::drop_captions() {
  tar::TextFiles texts;
  for (const Shard& shard : shards_) {
    texts.files += shard.index.text_labels + shard.index.long_texts;
    texts.too_long += shard.index.long_texts;
  }
  const std::set<std::string> names = names_of(shards_);
  texts.different = names.size();
  const bool has_numbers = texts.too_long == 0 && are_integers(names);
  if (texts.files == 0 || has_numbers || texts.are_class_names()) return;
  maybe_labels_ = texts.text();
  for (Shard& shard : shards_) {
    if (shard.index.text_labels == 0) continue;
    shard.index.label_names.clear();
    for (SamplePlace& place : shard.index.places) place.label = -1;
  }
}

void ShardSet::note_missing_labels() {
  for (const Shard& shard : shards_) {
    const auto note = [&](std::string& into, const std::string& what) {
      if (into.empty() && !what.empty()) {
        into = fmt::format("'{}': {}", shard.path.string(), what);
      }
    };
    note(unfit_labels_, shard.index.unfit_labels);
    note(maybe_labels_, shard.index.maybe_labels);
  }
}

void ShardSet::number_names() {
  const std::set<std::string> names = names_of(shards_);
  if (names.empty()) return;
  const bool has_numbers = are_integers(names);
  // Classes that a file lists may have an order of their own.
  const std::set<std::string> known(classes_.begin(), classes_.end());
  if (!has_numbers && !std::ranges::includes(known, names)) {
    classes_.assign(names.begin(), names.end());
  }
  std::unordered_map<std::string, std::int64_t> numbers;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    numbers.emplace(classes_[i], static_cast<std::int64_t>(i));
  }
  for (Shard& shard : shards_) {
    for (SamplePlace& place : shard.index.places) {
      if (shard.index.label_names.empty() || place.label < 0) continue;
      const auto& name = shard.index.label_names.at(static_cast<std::size_t>(place.label));
      place.label = has_numbers ? *as_integer(name) : numbers.at(name);
    }
  }
}

ShardSet::Place ShardSet::place_of(std::uint64_t sample) const {
  const auto behind = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
  const auto shard = static_cast<std::size_t>(behind - first_samples_.begin()) - 1;
  return {shard, sample - first_samples_[shard]};
}

std::shared_ptr<const MappedShard> ShardSet::use_mapped(std::size_t shard) const {
  const std::lock_guard lock(mutex_);
  const Entry& entry = entries_[shard];
  if (entry.mapped != nullptr) recent_.splice(recent_.begin(), recent_, entry.recent);
  return entry.mapped;
}

std::shared_ptr<const MappedShard> ShardSet::map(std::size_t shard) const {
  if (auto mapped = use_mapped(shard)) return mapped;
  // Storage may take its time, so nobody else waits meanwhile; two threads may do this at once.
  auto mapped = std::make_shared<const MappedShard>(shards_[shard].path);
  const std::uint64_t expected = shards_[shard].index.bytes;
  if (mapped->state().bytes != expected) {
    throw CorruptData(
        mapped->path(), std::min(mapped->state().bytes, expected),
        fmt::format("the file has {} bytes, its dataset says {}", mapped->state().bytes, expected));
  }
  std::shared_ptr<const MappedShard> evicted;  // unmapped after the lock is released
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[shard];
  if (entry.mapped != nullptr) return entry.mapped;
  if (entry.first_state && *entry.first_state != mapped->state()) {
    throw CorruptData(mapped->path(), 0, "the file is not the one that was read before");
  }
  if (recent_.size() >= options_.max_open_shards) {
    evicted = std::move(entries_[recent_.back()].mapped);
    entries_[recent_.back()].mapped.reset();
    recent_.pop_back();
  }
  recent_.push_front(shard);
  entry = {mapped, mapped->state(), recent_.begin()};
  return mapped;
}

}  // namespace precache
