// SPDX-License-Identifier: Apache-2.0
#include "convert/encoded_source.hpp"

#include <fmt/format.h>

#include "convert/decode/image_kind.hpp"
#include "convert/foreign_shards.hpp"
#include "convert/source/class_names.hpp"
#include "convert/source/source_path.hpp"
#include "precache/formats/error.hpp"
#include "reader/open_shards.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestImage = std::uint64_t{256} << 20;  // as FileReader has it

}  // namespace

EncodedSource::EncodedSource(const RepackOptions& options) {
  std::error_code ignored;
  if (fs::is_directory(options.source, ignored) && !holds_shards(options.source)) {
    folder_ = options.source;
    source_ = open_folder(folder_, parse_labelling(options.labels, options.classes));
  } else {
    list_shards_of(options);
  }
  keys_.emplace(source_.listing);
}

void EncodedSource::list_shards_of(const RepackOptions& options) {
  const auto listed = list_shards(options.source, std::string_view());
  for (const ListedShard& shard : listed) {
    if (shard.entry == nullptr) continue;
    throw Unsupported(fmt::format("'{}' holds tensors, no encoded images", shard.path.string()),
                      "Leave out --keep-encoded to convert tensors.");
  }
  fingerprint_ = fingerprint_of(listed);
  folder_ = listed.front().path.parent_path();
  if (folder_.empty()) folder_ = ".";
  shards_ = open_shards(listed, {});
  if (shards_->spec()) {
    throw Unsupported(
        fmt::format("the samples of '{}' are tensors, no encoded images", options.source.string()),
        "Leave out --keep-encoded to convert tensors.");
  }
  if (!options.classes.empty()) {
    source_.classes = read_class_names(options.classes);
  } else if (const fs::path beside = folder_ / kClassesName; fs::exists(beside)) {
    source_.classes = read_class_names(beside);
  } else {
    source_.classes = shards_->classes();
  }
  for (std::uint64_t i = 0; i < shards_->samples(); ++i) {
    const ShardSet::Place place = shards_->place_of(i);
    const auto mapped = shards_->map(place.shard);
    const ColumnValues& values = shards_->values(place.shard);
    source_.listing.add({foreign_path(values.key(mapped->bytes(), place.row), i, ".jpg"),
                         values.payload(place.row).bytes, 0,
                         values.label(mapped->bytes(), place.row)});
  }
  if (source_.listing.size() == 0) {
    throw InvalidArgument(fmt::format("there are no samples in '{}'", options.source.string()));
  }
}

std::optional<Rejection> EncodedSource::Reader::read(std::uint64_t sample,
                                                     std::span<const std::byte>& bytes) {
  const ListedFile listed = source_.listing()[sample];
  if (source_.shards_ == nullptr) {
    if (auto rejection = files_.read(listed, bytes)) return rejection;
  } else {
    if (listed.size > kLargestImage) return Rejection{"limit", "it is larger than 256 MiB"};
    const ShardSet& shards = *source_.shards_;
    const ShardSet::Place place = shards.place_of(sample);
    const auto mapped = shards.map(place.shard);
    shards.values(place.shard).verify(mapped->bytes(), place.row);
    buffer_.resize(listed.size);
    mapped->file().read_at(shards.values(place.shard).payload(place.row).offset, buffer_);
    mapped->check();
    bytes = buffer_;
  }
  if (image_kind(bytes) != ImageKind::kOther) return std::nullopt;
  return Rejection{"decode", fmt::format("neither JPEG nor PNG: it is {}", describe_other(bytes))};
}

}  // namespace precache
