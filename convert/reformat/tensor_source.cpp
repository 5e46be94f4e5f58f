// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/tensor_source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_names.hpp"
#include "formats/shard/limits.hpp"
#include "precache/formats/error.hpp"
#include "reader/shards/open_shards.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// Adds the facts about the files that need no reading. Throws IoError.
void take_stamps(TensorSource& source, const std::vector<ListedShard>& listed) {
  std::uint32_t crc = 0;
  for (const ListedShard& shard : listed) {
    struct stat status {};
    if (::stat(shard.path().c_str(), &status) != 0)
      throw IoError("cannot read", shard.path(), errno);
    source.files.push_back(shard.path());
    source.bytes = checked_add(source.bytes, static_cast<std::uint64_t>(status.st_size));
    crc = crc32c::extend(crc, as_bytes(fmt::format("{}\n{}\n{}\n", shard.path().filename().string(),
                                                   status.st_size, mtime_ns(status))));
  }
  if (listed.front().manifest != nullptr) {
    crc = crc32c::extend(crc, as_bytes(listed.front().manifest->to_json()));
  }
  source.shards = listed.size();
  source.fingerprint = fmt::format("crc32c:{:08x}", crc);
}

void check_together(const std::vector<ListedShard>& listed) {
  const auto dataset = [](const ListedShard& shard) {
    return shard.manifest ? std::optional(shard.path().parent_path()) : std::nullopt;
  };
  const auto other = std::ranges::find_if(
      listed, [&](const ListedShard& shard) { return dataset(shard) != dataset(listed.front()); });
  if (other == listed.end()) return;
  throw InvalidArgument(fmt::format("'{}' and '{}' are not from one dataset",
                                    listed.front().path().string(), other->path().string()),
                        "Convert shards of one manifest, or shards without a manifest.");
}

void take_dataset(TensorSource& source, const std::vector<ListedShard>& listed,
                  const std::optional<std::string>& split) {
  const Manifest& manifest = *listed.front().manifest;
  source.has_manifest = true;
  source.meaning = {manifest.spec, manifest.recipe};
  source.classes = manifest.classes;
  source.format = manifest.format;
  for (const auto& [split_name, entry] : manifest.splits) {
    std::vector<ListedShard> shards;
    std::ranges::copy_if(
        listed, std::back_inserter(shards),
        [&, &name = split_name](const ListedShard& shard) { return shard.split() == name; });
    if (shards.empty()) continue;
    if (split && *split != split_name) {
      throw InvalidArgument(fmt::format("'{}' belongs to the split '{}', not to '{}'",
                                        shards.front().path().string(), split_name, *split));
    }
    source.splits.push_back(
        std::make_unique<const SourceSplit>(split_name, entry, std::move(shards)));
  }
}

constexpr const char* kUseBuildHint =
    "Use 'precache build' to make tensors from encoded images or from HDF5 arrays of any type, or "
    "'precache pack' to keep encoded images as they are.";

/// Refuses shards whose labels would be lost.
void check_labels(const ShardSet& shards) {
  const std::string& unfit = shards.mismatched_labels();
  const std::string& maybe = shards.maybe_labels();
  if (unfit.empty() && maybe.empty()) return;
  throw InvalidArgument(
      unfit.empty() ? maybe : unfit + "; a label must be one integer or name",
      "Name the labels with `label_key`, or leave them out with the `labels` none.");
}

void take_foreign(TensorSource& source, const std::vector<ListedShard>& listed,
                  const ReformatOptions& options) {
  OpenOptions open;
  open.image_key = options.image_key;
  open.label_key = options.label_key;
  open.without_labels = options.without_labels;
  open.helper = options.helper;
  try {
    source.splits.push_back(
        std::make_unique<const SourceSplit>(options.split.value_or("train"), listed, open));
  } catch (Unsupported& error) {
    error.add_hint(kUseBuildHint);
    throw;
  }
  const ShardSet& shards = source.splits.front()->shards();
  if (!shards.spec()) {
    throw Unsupported(
        "the samples are not tensors of one shape and type: " + shards.unsupported_reason(),
        kUseBuildHint);
  }
  check_labels(shards);
  const ShardIndex& first = shards.index(0);
  source.dropped_columns = first.left_out;
  if (first.named != nullptr) {  // only the manifest has the meaning of their values
    for (const NamedColumn& column : *first.named) {
      if (std::ranges::find(first.left_out, column.name) != first.left_out.end()) continue;
      source.dropped_columns.push_back(column.name);
    }
  }
  source.meaning = {*shards.spec(), StoredRecipe::of_unknown_origin(*shards.spec())};
  source.classes = shards.classes();
  source.format = shards.index(0).format;
}

}  // namespace

std::string third_party_path(std::string_view key, std::uint64_t sample) {
  std::string path;
  for (std::size_t begin = 0; begin < std::min(key.size(), kLongestKey);) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == "." || part == "..") continue;
    if (!path.empty()) path += '/';
    for (const char c : part) {
      path +=
          is_control(c) ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
    }
  }
  const bool has_ending = path.ends_with(".npy") || has_image_extension(path);
  if (has_ending && path.rfind('.') != 0) path.resize(path.rfind('.'));
  if (path.empty() || path.size() > kLongestKey) path = fmt::format("{:08}", sample);
  return path + ".npy";
}

SourceSplit::SourceSplit(std::string name, const SplitEntry& entry, std::vector<ListedShard> shards)
    : name_(std::move(name)),
      listed_(std::move(shards)),
      shards_(open_shards(listed_, {})),
      facts_(entry) {
  facts_.shards.clear();
  if (facts_.names) return;
  NameLimits limits;
  for (std::uint64_t i = 0; i < shards_->samples(); ++i) {
    const SampleName sample = stored_name(i);
    limits.include(sample.key, sample.label);
  }
  facts_.names = limits;
}

SourceSplit::SourceSplit(std::string name, std::vector<ListedShard> shards,
                         const OpenOptions& options)
    : name_(std::move(name)), listed_(std::move(shards)), shards_(open_shards(listed_, options)) {
  facts_.shuffled = false;
  const std::uint64_t tensor_bytes = shards_->spec() ? shards_->spec()->size_bytes() : 0;
  for (std::uint64_t i = 0; i < shards_->samples(); ++i) {
    const SampleName sample = stored_name(i);
    listing_.add({third_party_path(sample.key, i), tensor_bytes, 0, sample.label});
  }
  facts_.source_fingerprint = listing_.fingerprint();
  // Other images of the same file have the same sizes, names and labels.
  if (!options.image_key.empty()) {
    facts_.source_fingerprint =
        fmt::format("crc32c:{:08x}",
                    crc32c::value(as_bytes(facts_.source_fingerprint + "\n" + options.image_key)));
  }
  facts_.names = keys_.emplace(listing_).limits();
}

std::optional<LabelRange> SourceSplit::labels() const {
  if (keys_) return listing_.labels();
  const NameLimits& known = limits();
  if (known.smallest_label == -1 && known.largest_label == 0) return std::nullopt;
  return LabelRange{known.smallest_label == -1 ? 0 : known.smallest_label, known.largest_label};
}

SampleName SourceSplit::stored_name(std::uint64_t sample) const {
  const ShardSet::Location place = shards_->locate(sample);
  const auto mapped = shards_->map(place.shard);
  const ColumnValues& values = shards_->values(place.shard);
  SampleName stored{values.key(mapped->bytes(), place.row),
                    values.label(mapped->bytes(), place.row)};
  mapped->check();
  return stored;
}

SampleName SourceSplit::sample_name(std::uint64_t sample) const {
  if (keys_) return {keys_->key(sample), listing_[sample].label};
  SampleName stored = stored_name(sample);
  NameLimits with = limits();
  with.include(stored.key, stored.label);
  if (with == limits()) return stored;
  const ShardSet::Location place = shards_->locate(sample);
  throw CorruptData(
      listed_[place.shard].path(), 0,
      fmt::format("the key or the label of record {} exceeds the limits in the manifest",
                  place.row));
}

std::vector<std::uint64_t> SourceSplit::shard_samples() const {
  std::vector<std::uint64_t> samples;
  for (std::size_t i = 0; i < shards_->shard_count(); ++i) {
    samples.push_back(shards_->index(i).samples);
  }
  return samples;
}

TensorSource open_tensor_source(const ReformatOptions& options) {
  const fs::path& path = options.shards;
  const std::optional<std::string>& split = options.split;
  // Without a manifest not all shards are taken, because a test split may lie next to the training
  // split.
  std::error_code ignored;
  const fs::path folder = path.filename() == kManifestName ? path.parent_path() : path;
  const bool has_manifest = fs::exists(folder / kManifestName, ignored);
  const auto listed = list_shards(path, split          ? std::optional<std::string_view>(*split)
                                        : has_manifest ? std::nullopt
                                                       : std::optional<std::string_view>(""));
  if (listed.empty()) {
    throw InvalidArgument(fmt::format("'{}' has no shards", path.string()));
  }
  if (!split && !has_manifest && listed.size() != list_shards(path, std::nullopt).size()) {
    throw InvalidArgument(fmt::format("'{}' has shards of several splits", path.string()),
                          "Choose one with `split`, or name the shards with a pattern.");
  }
  check_together(listed);
  TensorSource source;
  source.folder =
      listed.front().path().parent_path().empty() ? "." : listed.front().path().parent_path();
  take_stamps(source, listed);
  if (listed.front().manifest != nullptr) {
    if (!options.image_key.empty() || !options.label_key.empty() || options.without_labels) {
      throw InvalidArgument(
          fmt::format("'{}' has a manifest, which names its images and labels",
                      source.folder.string()),
          "Leave out `image_key`, `label_key` and `labels`: they are for shards without a "
          "manifest.");
    }
    take_dataset(source, listed, split);
  } else {
    take_foreign(source, listed, options);
  }
  return source;
}

}  // namespace precache
