// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/tensor_input.hpp"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <sys/uio.h>

#include <algorithm>
#include <memory>

#include "convert/job/same_source.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// Reads three neighbouring parts of a file, with one call if the system reads all at once.
void read_parts(const File& file, std::uint64_t offset, std::span<std::byte> head,
                std::span<std::byte> middle, std::span<std::byte> tail) {
  const iovec parts[] = {
      {head.data(), head.size()}, {middle.data(), middle.size()}, {tail.data(), tail.size()}};
  const std::size_t total = head.size() + middle.size() + tail.size();
  const ssize_t count = ::preadv(file.descriptor(), parts, 3, static_cast<off_t>(offset));
  if (count >= 0 && static_cast<std::size_t>(count) == total) return;
  file.read_at(offset, head);
  file.read_at(offset + head.size(), middle);
  file.read_at(offset + head.size() + middle.size(), tail);
}

/// Reads with read(2) and not through the mapping: that takes no page faults, and a shard that is
/// cut meanwhile gives an error, not a signal.
class StoredTensors {
 public:
  StoredTensors(const SourceSplit& split, const TensorConversion& conversion, SourceCrcs& check)
      : split_(split),
        conversion_(conversion),
        check_(check),
        tensor_(split.shards().spec()->size_bytes()) {
    if (!conversion.is_copy()) stored_.resize(split.shards().spec()->size_bytes());
  }

  /// Without `values`, only the tensor is wanted.
  MadeTensor make(std::uint64_t sample, std::span<std::byte> tensor,
                  std::span<std::byte> values_to) {
    MadeTensor made;
    const ShardSet& shards = split_.shards();
    const ShardSet::Location place = shards.locate(sample);
    const auto mapped = shards.map(place.shard);
    const ColumnValues& values = shards.values(place.shard);
    const std::span<std::byte> stored = conversion_.is_copy() ? tensor : std::span(stored_);
    const auto extent = check_.extent(place);
    if (!extent) {
      values.verify(mapped->bytes(), place.row);
      mapped->file().read_at(values.payload(place.row).offset, stored);
      mapped->check();
      made.source_crc = crc32c::value(stored);
    } else {
      around_.resize(extent->head_bytes + extent->tail_bytes);
      const auto head = std::span(around_).first(extent->head_bytes);
      const auto tail = std::span(around_).subspan(extent->head_bytes);
      read_parts(mapped->file(), extent->begin, head, stored, tail);
      mapped->check();
      made.source_crc = crc32c::value(stored);
      check_.note(place,
                  crc32c::extend(tensor_.append(crc32c::value(head), made.source_crc), tail));
    }
    if (!values_to.empty()) {
      copy_values(mapped->bytes(), values, place, values_to);
      mapped->check();
    }
    if (conversion_.is_copy()) {
      made.tensor_crc = made.source_crc;
    } else if (!conversion_.run(stored, tensor, pixels_)) {
      throw CorruptData(
          mapped->path(), values.payload(place.row).offset,
          fmt::format("record {} has a value that the dataset's recipe cannot produce", place.row));
    }
    return made;
  }

 private:
  void copy_values(std::span<const std::byte> file, const ColumnValues& values,
                   const ShardSet::Location& place, std::span<std::byte> to) const {
    const ShardIndex& index = split_.shards().index(place.shard);
    for (std::size_t i = 0; i < index.columns->named.size(); ++i) {
      const auto from = values.named(file, i, place.row);
      std::ranges::copy(from, to.begin());
      to = to.subspan(from.size());
    }
  }

  const SourceSplit& split_;
  const TensorConversion& conversion_;
  SourceCrcs& check_;
  crc32c::BlockCombiner tensor_;
  std::vector<std::byte> stored_;
  std::vector<std::byte> around_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace

SourceCrcs::SourceCrcs(const SourceSplit& split) : split_(split) {
  const ShardSet& set = split.shards();
  if (set.shard_count() == 0 || split.entry(0) == nullptr) return;
  shards_ = std::vector<CheckedShard>(set.shard_count());
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const ShardIndex& index = set.index(i);
    if (index.samples == 0) continue;
    // Tar and TFRecord files begin with a record; in HDF5 files a record is a row of /images alone.
    const Column& image = index.columns->image;
    const std::uint64_t tensor = index.spec->size_bytes();
    const std::uint64_t head = index.format == Format::kHdf5 ? 0 : image.base;
    const std::uint64_t begin = image.base - head;
    if (checked_add(head, tensor) > image.stride || begin > index.bytes ||
        index.samples > (index.bytes - begin) / image.stride) {
      throw CorruptData(set.map(i)->path(), image.base,
                        "the manifest does not place its records one after another");
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
  CheckedShard& shard = shards_[place.shard];
  shard.crcs[place.row] = crc;
  if (shard.missing.fetch_sub(1) == 1) compare(place.shard);
}

std::uint32_t SourceCrcs::crc(std::size_t shard, std::uint64_t begin, std::uint64_t end) const {
  const auto mapped = split_.shards().map(shard);
  const std::uint32_t crc = crc_of(mapped->file(), begin, end);
  mapped->check();
  return crc;
}

void SourceCrcs::compare(std::size_t number) const {
  const CheckedShard& shard = shards_[number];
  const std::uint64_t end = shard.first.begin + shard.crcs.size() * shard.stride;
  const std::uint64_t bytes = split_.shards().index(number).bytes;
  std::uint32_t crc = this->crc(number, 0, shard.first.begin);
  const crc32c::BlockCombiner combiner(shard.stride);
  for (const std::uint32_t record : shard.crcs) crc = combiner.append(crc, record);
  expect(number, crc32c::combine(crc, this->crc(number, end, bytes), bytes - end));
}

void SourceCrcs::expect(std::size_t shard, std::uint32_t crc) const {
  const std::uint32_t expected = split_.entry(shard)->crc32c;
  if (crc == expected) return;
  CorruptData error(
      split_.shards().map(shard)->path(), 0,
      fmt::format("the CRC-32C of the file is {:08x}, its manifest says {:08x}", crc, expected));
  error.add_hint("Run 'precache verify' for details. Restore the shard, or build it again.");
  throw error;
}

void SourceCrcs::check_rest(const std::atomic<bool>& stop) {
  tbb::parallel_for(std::size_t{0}, shards_.size(), [&](std::size_t i) {
    if (shards_[i].missing == 0 || stop) return;
    expect(i, crc(i, 0, split_.shards().index(i).bytes));
  });
}

void SourceCrcs::check_empty() {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].crcs.empty()) expect(i, crc(i, 0, split_.shards().index(i).bytes));
  }
}

TensorMaker tensor_maker(const SourceSplit& split, const TensorConversion& conversion,
                         SourceCrcs& check) {
  return [tensors = std::make_shared<StoredTensors>(split, conversion, check)](
             const PlannedRecord& record, std::span<std::byte> tensor,
             std::span<std::byte> values) { return tensors->make(record.sample, tensor, values); };
}

}  // namespace precache
