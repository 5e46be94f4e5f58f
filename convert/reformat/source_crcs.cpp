// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/source_crcs.hpp"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kBufferBytes = 256 << 10;

}  // namespace

SourceCrcs::SourceCrcs(const SourceSplit& split) : split_(split) {
  const ShardSet& set = split.shards();
  if (set.shard_count() == 0 || split.entry(0) == nullptr) return;
  shards_ = std::vector<Shard>(set.shard_count());
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const ShardIndex& index = set.index(i);
    if (index.samples == 0) continue;
    // Tar and TFRecord files begin with a record; one of HDF5 is a row of the images alone.
    const Column& image = index.columns.image;
    const std::uint64_t tensor = index.spec->size_bytes();
    const std::uint64_t head = index.format == Format::kHdf5 ? 0 : image.base;
    const std::uint64_t begin = image.base - head;
    if (checked_add(head, tensor) > image.stride || begin > index.bytes ||
        index.samples > (index.bytes - begin) / image.stride) {
      throw CorruptData(set.map(i)->path(), image.base,
                        "the manifest does not place its records one behind another");
    }
    shards_[i].first = {begin, head, image.stride - head - tensor};
    shards_[i].stride = image.stride;
    shards_[i].crcs.resize(index.samples);
    shards_[i].missing = index.samples;
  }
}

std::optional<RecordExtent> SourceCrcs::extent(const ShardSet::Location& place) const {
  if (shards_.empty()) return std::nullopt;
  RecordExtent record = shards_[place.shard].first;
  record.begin += place.row * shards_[place.shard].stride;
  return record;
}

void SourceCrcs::note(const ShardSet::Location& place, std::uint32_t crc) {
  Shard& shard = shards_[place.shard];
  shard.crcs[place.row] = crc;
  if (shard.missing.fetch_sub(1) == 1) compare(place.shard);
}

std::uint32_t SourceCrcs::crc_of(std::size_t shard, std::uint64_t begin, std::uint64_t end) const {
  const auto mapped = split_.shards().map(shard);
  std::vector<std::byte> buffer(std::min(kBufferBytes, end - begin));
  std::uint32_t crc = 0;
  while (begin < end) {
    const auto part = std::span(buffer).first(std::min<std::uint64_t>(kBufferBytes, end - begin));
    mapped->file().read_at(begin, part);
    crc = crc32c::extend(crc, part);
    begin += part.size();
  }
  mapped->check();
  return crc;
}

void SourceCrcs::compare(std::size_t number) const {
  const Shard& shard = shards_[number];
  const std::uint64_t end = shard.first.begin + shard.crcs.size() * shard.stride;
  const std::uint64_t bytes = split_.shards().index(number).bytes;
  std::uint32_t crc = crc_of(number, 0, shard.first.begin);
  const crc32c::BlockCombiner combiner(shard.stride);
  for (const std::uint32_t record : shard.crcs) crc = combiner.append(crc, record);
  expect(number, crc32c::combine(crc, crc_of(number, end, bytes), bytes - end));
}

void SourceCrcs::expect(std::size_t shard, std::uint32_t crc) const {
  const std::uint32_t expected = split_.entry(shard)->crc32c;
  if (crc == expected) return;
  CorruptData error(
      split_.shards().map(shard)->path(), 0,
      fmt::format("the CRC-32C of the file is {:08x}, its manifest says {:08x}", crc, expected));
  error.add_hint("precache verify says more. Restore the shard, or build it anew.");
  throw error;
}

void SourceCrcs::check_rest(const std::atomic<bool>& stop) {
  tbb::parallel_for(std::size_t{0}, shards_.size(), [&](std::size_t i) {
    if (shards_[i].missing == 0 || stop) return;
    expect(i, crc_of(i, 0, split_.shards().index(i).bytes));
  });
}

void SourceCrcs::check_empty() {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].crcs.empty()) expect(i, crc_of(i, 0, split_.shards().index(i).bytes));
  }
}

}  // namespace precache
