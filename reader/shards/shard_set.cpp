// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/shard_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <unordered_map>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/text.hpp"
#include "formats/os/bus_fault.hpp"
#include "formats/tar/webdataset.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostOpenShards = 1024;

std::set<std::string> names_of(const std::vector<ShardSet::IndexedShard>& shards) {
  std::set<std::string> names;
  for (const ShardSet::IndexedShard& shard : shards) {
    names.insert(shard.index.label_names.begin(), shard.index.label_names.end());
  }
  return names;
}

bool are_integers(const std::set<std::string>& names) {
  return std::ranges::all_of(
      names, [](const auto& name) { return parse_number<std::int64_t>(name).has_value(); });
}

std::size_t default_open_shards() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, kMostOpenShards);
}

/// The distance between payloads. An index may have a table of places only because of its labels.
std::optional<std::uint64_t> stride_of(const ShardIndex& index) {
  const auto& places = index.places;
  if (places.empty()) return index.columns->image.stride;
  if (places.size() == 1) return places[0].payload_bytes;
  const std::uint64_t stride = places[1].payload - places[0].payload;
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].payload <= places[i - 1].payload ||
        places[i].payload - places[i - 1].payload != stride ||
        places[i].payload_bytes != places[0].payload_bytes) {
      return std::nullopt;
    }
  }
  return stride;
}

}  // namespace

ShardSet::ShardSet(std::vector<IndexedShard> shards, std::vector<std::string> classes,
                   const OpenOptions& options, StoredRecipe recipe)
    : shards_(std::move(shards)),
      classes_(std::move(classes)),
      options_(options),
      recipe_(std::move(recipe)),
      entries_(shards_.size()) {
  if (options_.max_open_shards == 0) options_.max_open_shards = default_open_shards();
  drop_captions();
  note_missing_labels();
  note_columns();
  number_names();
  values_.reserve(shards_.size());
  strides_.reserve(shards_.size());
  first_samples_.reserve(shards_.size() + 1);
  first_samples_.push_back(0);
  const IndexedShard* first_nonempty = nullptr;  // the first shard with samples gives the spec
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    IndexedShard& shard = shards_[i];
    entries_[i].first_state = shard.state;
    if (shard.mapped != nullptr && recent_.size() < options_.max_open_shards) {
      recent_.push_back(i);
      entries_[i].mapped = shard.mapped;
      entries_[i].recent = std::prev(recent_.end());
    }
    shard.mapped.reset();  // stays mapped only within the limit
    values_.emplace_back(shard.index, shard.path);
    strides_.push_back(stride_of(shard.index));
    first_samples_.push_back(checked_add(first_samples_.back(), shard.index.samples));
    if (first_nonempty == nullptr || first_nonempty->index.samples == 0) {
      first_nonempty = &shard;
      spec_ = shard.index.spec;
      unsupported_reason_ = shard.index.unsupported_reason;
    } else if (shard.index.samples != 0 && spec_ && shard.index.spec != spec_) {
      unsupported_reason_ =
          shard.index.spec ? fmt::format("its tensors are {} in '{}' and {} in '{}'", spec_->text(),
                                         first_nonempty->path, shard.index.spec->text(), shard.path)
                           : fmt::format("'{}': {}", shard.path, shard.index.unsupported_reason);
      spec_.reset();
    }
  }
}

void ShardSet::drop_captions() {
  tar::TextFiles texts;
  for (const IndexedShard& shard : shards_) {
    texts.files += shard.index.text_labels + shard.index.long_texts;
    texts.too_long += shard.index.long_texts;
  }
  const std::set<std::string> names = names_of(shards_);
  texts.different = names.size();
  const bool has_numbers = texts.too_long == 0 && are_integers(names);
  if (texts.files == 0 || has_numbers || texts.are_class_names()) return;
  maybe_labels_ = texts.text();
  for (IndexedShard& shard : shards_) {
    if (shard.index.text_labels == 0) continue;
    shard.index.label_names.clear();
    for (SampleLocation& place : shard.index.places) place.label = -1;
  }
}

void ShardSet::note_missing_labels() {
  for (const IndexedShard& shard : shards_) {
    const auto note = [&](std::string& into, const std::string& what) {
      if (into.empty() && !what.empty()) {
        into = fmt::format("'{}': {}", shard.path, what);
      }
    };
    note(mismatched_labels_, shard.index.mismatched_labels);
    note(maybe_labels_, shard.index.maybe_labels);
  }
}

void ShardSet::note_columns() {
  const ShardIndex* first = nullptr;
  for (const IndexedShard& shard : shards_) {
    if (shard.index.samples == 0) continue;
    if (first == nullptr) first = &shard.index;
    const NamedColumns& here = shard.index.named;
    const NamedColumns& there = first->named;
    if (here == there || (here != nullptr && there != nullptr && *here == *there)) continue;
    differs_in_columns_ = true;
    return;
  }
  if (first != nullptr) named_ = first->named;
}

std::size_t ShardSet::named_column(std::string_view name, std::string_view option) const {
  std::vector<std::string_view> known;
  if (named_ != nullptr) {
    for (const NamedColumn& column : *named_) {
      if (column.name == name) return known.size();
      known.push_back(column.name);
    }
  }
  const std::string hint = differs_in_columns_ ? "Its shards differ in their columns."
                           : known.empty()     ? "It has only images, labels and keys."
                                               : fmt::format("It has {}.", fmt::join(known, ", "));
  throw InvalidArgument(
      option.empty()
          ? fmt::format("the dataset has no column '{}'", name)
          : fmt::format("`{}` has '{}', which is not a column of the dataset", option, name),
      hint);
}

void ShardSet::number_names() {
  const std::set<std::string> names = names_of(shards_);
  if (names.empty()) return;
  const bool has_numbers = are_integers(names);
  // The class list of a file may have another order than the alphabet.
  const std::set<std::string> known(classes_.begin(), classes_.end());
  if (!has_numbers && !std::ranges::includes(known, names)) {
    classes_.assign(names.begin(), names.end());
  }
  std::unordered_map<std::string, std::int64_t> numbers;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    numbers.emplace(classes_[i], static_cast<std::int64_t>(i));
  }
  for (IndexedShard& shard : shards_) {
    for (SampleLocation& place : shard.index.places) {
      if (shard.index.label_names.empty() || place.label < 0) continue;
      const auto& name = shard.index.label_names.at(static_cast<std::size_t>(place.label));
      place.label = has_numbers ? *parse_number<std::int64_t>(name) : numbers.at(name);
    }
  }
}

ShardSet::Location ShardSet::locate(std::uint64_t sample) const {
  const auto next = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
  const auto shard = static_cast<std::size_t>(next - first_samples_.begin()) - 1;
  return {shard, sample - first_samples_[shard]};
}

std::shared_ptr<const MappedShard> ShardSet::use_mapped(std::size_t shard) const {
  const std::lock_guard lock(mutex_);
  const Entry& entry = entries_[shard];
  if (entry.mapped != nullptr) recent_.splice(recent_.begin(), recent_, entry.recent);
  return entry.mapped;
}

bool ShardSet::agrees_with(const Manifest& manifest, const ManifestWatch& watch) const {
  struct Found {
    const SplitEntry* split;
    const ShardEntry* entry;
  };
  std::unordered_map<std::string_view, Found> entries;
  for (const auto& [split_name, split] : manifest.splits) {
    for (const ShardEntry& entry : split.shards) entries.emplace(entry.file, Found{&split, &entry});
  }
  return std::ranges::all_of(shards_, [&](const IndexedShard& shard) {
    if (shard.watch.get() != &watch) return true;
    const auto found = entries.find(std::string_view(shard.path).substr(shard.path.rfind('/') + 1));
    if (found == entries.end()) return false;
    const auto& [split, known] = found->second;
    const ShardEntry& entry = *known;
    const ShardIndex& index = shard.index;
    const bool has_same_named =
        index.named ? *index.named == split->columns : split->columns.empty();
    return entry.samples == index.samples && entry.bytes == index.bytes &&
           entry.crc32c == shard.crc32c && entry.columns == index.columns && has_same_named &&
           manifest.spec == index.spec && manifest.format == index.format;
  });
}

void ShardSet::check_manifest(std::size_t shard, Ask ask) const {
  if (shards_[shard].watch == nullptr) return;
  const ManifestWatch& watch = *shards_[shard].watch;
  const bool is_current =
      watch.is_current(ask, [&] { return agrees_with(Manifest::read(watch.path()), watch); });
  if (is_current) return;
  CorruptData error(watch.path(), 0, "the dataset was replaced or removed while it was open");
  error.add_hint("Open it again.");
  throw error;
}

void ShardSet::look_around(std::size_t shard) const {
  const std::int64_t now = coarse_now_ns();
  const bool was_forked = generation_.load(std::memory_order_relaxed) != fork_generation();
  if (was_forked || now >= next_handler_ns_.load(std::memory_order_relaxed)) keep_handler();
  const auto& watch = shards_[shard].watch;
  if (watch != nullptr && watch->is_due(now)) check_manifest(shard, Ask::kByStat);
}

void ShardSet::keep_handler() const {
  generation_.store(fork_generation(), std::memory_order_relaxed);
  next_handler_ns_.store(coarse_now_ns() + kLookEveryNs, std::memory_order_relaxed);
  if (options_.handle_bus_errors) bus_fault::install_handler();
}

std::shared_ptr<const MappedShard> ShardSet::open_mapping(std::size_t shard) const {
  keep_handler();
  try {
    return std::make_shared<const MappedShard>(shards_[shard].path);
  } catch (IoError& error) {
    if (error.code() == EMFILE || error.code() == ENFILE) {
      error.add_hint(fmt::format(
          "{} shards are open, most of them because samples, rows or batches are held. Release "
          "some, or raise the limit (ulimit -n).",
          MappedShard::open_count()));
      throw;
    }
    check_manifest(shard, Ask::kByOpening);
    throw;
  }
}

std::shared_ptr<const MappedShard> ShardSet::map(std::size_t shard) const {
  if (auto mapped = use_mapped(shard)) {
    look_around(shard);
    return mapped;
  }
  // Without the lock, because storage may be slow. Two threads may do this at once.
  auto mapped = open_mapping(shard);
  check_manifest(shard,
                 Ask::kByOpening);  // after mapping, so that the file belongs to this manifest
  const std::uint64_t expected = shards_[shard].index.bytes;
  if (mapped->state().bytes != expected) {
    throw CorruptData(mapped->path(), std::min(mapped->state().bytes, expected),
                      fmt::format("the file has {} bytes, the manifest says {}",
                                  mapped->state().bytes, expected));
  }
  std::shared_ptr<const MappedShard> evicted;  // unmapped after the lock is released
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[shard];
  if (entry.mapped != nullptr) return entry.mapped;
  if (entry.first_state && *entry.first_state != mapped->state()) {
    throw CorruptData(mapped->path(), 0, "the file was replaced since it was read");
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
