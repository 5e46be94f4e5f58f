// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/tensor_input.hpp"

#include <fmt/format.h>
#include <sys/uio.h>

#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// Reads three neighbouring parts of a file with one call, if the system plays along.
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

/// Reads by read(2) and not through the mapping: that takes no page faults, and a shard that is cut
/// meanwhile is an error and no signal.
class StoredTensorMaker : public TensorMaker {
 public:
  StoredTensorMaker(const SourceSplit& split, const TensorConversion& conversion, SourceCrcs& check)
      : split_(split),
        conversion_(conversion),
        check_(check),
        tensor_(split.shards().spec()->size_bytes()) {
    if (!conversion.is_copy()) stored_.resize(split.shards().spec()->size_bytes());
  }

  std::optional<Rejection> make(std::uint64_t sample, std::span<std::byte> tensor) override {
    copied_crc_.reset();
    const ShardSet& shards = split_.shards();
    const ShardSet::Location place = shards.locate(sample);
    const auto mapped = shards.map(place.shard);
    const std::span<std::byte> stored = conversion_.is_copy() ? tensor : std::span(stored_);
    if (const auto extent = check_.extent(place)) {
      around_.resize(extent->head_bytes + extent->tail_bytes);
      const auto head = std::span(around_).first(extent->head_bytes);
      const auto tail = std::span(around_).subspan(extent->head_bytes);
      read_parts(mapped->file(), extent->begin, head, stored, tail);
      mapped->check();
      source_crc_ = crc32c::value(stored);
      check_.note(place, crc32c::extend(tensor_.append(crc32c::value(head), source_crc_), tail));
    } else {
      const ColumnValues& values = shards.values(place.shard);
      values.verify(mapped->bytes(), place.row);
      mapped->file().read_at(values.payload(place.row).offset, stored);
      mapped->check();
      source_crc_ = crc32c::value(stored);
    }
    if (conversion_.is_copy()) copied_crc_ = source_crc_;
    if (!conversion_.is_copy() && !conversion_.run(stored, tensor, pixels_)) {
      throw CorruptData(
          mapped->path(), shards.values(place.shard).payload(place.row).offset,
          fmt::format("record {} has a value that no pixel becomes by the dataset's recipe",
                      place.row));
    }
    return std::nullopt;
  }

  [[nodiscard]] std::uint32_t source_crc() const override { return source_crc_; }
  [[nodiscard]] std::optional<std::uint32_t> copied_crc() const override { return copied_crc_; }

 private:
  const SourceSplit& split_;
  const TensorConversion& conversion_;
  SourceCrcs& check_;
  crc32c::BlockCombiner tensor_;
  std::uint32_t source_crc_ = 0;
  std::optional<std::uint32_t> copied_crc_;
  std::vector<std::byte> stored_;
  std::vector<std::byte> around_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace

std::unique_ptr<TensorMaker> TensorInput::tensor_maker() const {
  return std::make_unique<StoredTensorMaker>(split_, conversion_, check_);
}

}  // namespace precache
