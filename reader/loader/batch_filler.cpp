// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/batch_filler.hpp"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "formats/bytes/little_endian.hpp"

namespace precache {
namespace {

// One turn of a thread: long enough to be worth it, short enough that threads share the first
// batch.
constexpr std::size_t kChunkBytes = 2 << 20;
constexpr std::size_t kViewChunkBytes = 64 << 20;  // nothing is copied
// Larger batches do not stay in the caches until they are read, so they bypass the caches.
constexpr std::size_t kStreamedBytes = 8 << 20;
constexpr std::size_t kProbeEvery = 8;
constexpr std::uint32_t kLargestOriginal = 1 << 30;  // a side; larger ones are not sizes

/// True if the page at `offset` is in the page cache; false if the file system cannot tell.
bool is_cached(const MappedShard& shard, std::uint64_t offset) {
  std::byte byte{};
  const iovec target{&byte, 1};
  return ::preadv2(shard.file().descriptor(), &target, 1, static_cast<off_t>(offset), RWF_NOWAIT) ==
         1;
}

void start_reading(const MappedShard& shard, std::uint64_t offset, std::uint64_t bytes) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = offset / page * page;
  // Only a hint. The read that follows reports errors.
  (void)::madvise(const_cast<std::byte*>(shard.bytes().data()) + first, bytes + offset - first,
                  MADV_WILLNEED);
}

}  // namespace

BatchFiller::BatchFiller(std::shared_ptr<const ShardSet> shards, const LoaderOptions& options,
                         std::size_t batch_bytes, ShardBytes in_place)
    : shards_(std::move(shards)),
      columns_(*shards_, options.columns),
      batch_bytes_(batch_bytes),
      stream_(batch_bytes_ > kStreamedBytes),
      writable_(options.writable),
      in_place_(std::move(in_place)) {
  for (std::size_t i = 0; shards_->named() != nullptr && i < shards_->named()->size(); ++i) {
    const NamedColumn& column = (*shards_->named())[i];
    const bool is_pair = column.shape == std::vector<std::uint32_t>{2};
    if (column.name == kSizeColumn && column.type == ValueType::kInt32 && is_pair) size_column_ = i;
  }
}

void BatchFiller::announce(BatchBuffer& batch, BufferPool& pool) const {
  batch.own.reset();
  batch.view.reset();
  batch.spec = batch.passes->view(0).result();
  batch.labels.resize(batch.samples.size());
  batch.originals.resize(batch.samples.size());
  if (!columns_.is_empty()) columns_.announce(batch);
  if (!make_view(batch)) {
    batch.buffer = pool.take_buffer();
    batch.data = batch.buffer.data();
    batch.stride_bytes = batch.spec.size_bytes();
  }
  if (!in_place_) read_ahead(batch);
}

std::size_t BatchFiller::chunk_rows(const BatchBuffer& batch) const {
  const std::size_t bytes = batch.view != nullptr ? kViewChunkBytes : kChunkBytes;
  return std::max<std::size_t>(1, bytes / batch.passes->sample_bytes());
}

bool BatchFiller::make_view(BatchBuffer& batch) const {
  if (batch.passes->size() != 1 || !batch.passes->view(0).is_copy() || writable_ || in_place_) {
    return false;
  }
  for (std::size_t i = 1; i < batch.samples.size(); ++i) {
    if (batch.samples[i] != batch.samples[0] + i) return false;
  }
  const ShardSet::Location first = shards_->locate(batch.samples.front());
  const auto& stride = shards_->stride(first.shard);
  if (!stride || batch.samples.size() > shards_->rows_from(first)) return false;
  auto mapped = shards_->map(first.shard);
  const std::byte* const data =
      mapped->bytes().data() + shards_->values(first.shard).payload(first.row).offset;
  // Third-party shards may have floats at odd addresses.
  if (!detail::is_aligned(batch.spec.dtype, data, *stride)) return false;
  batch.view = std::move(mapped);
  batch.data = data;
  batch.stride_bytes = *stride;
  return true;
}

void BatchFiller::read_ahead(const BatchBuffer& batch) const {
  const auto each = [&](std::size_t step, const auto& call) {
    for (std::size_t i = 0; i < batch.samples.size(); i += step) {
      const ShardSet::Location place = shards_->locate(batch.samples[i]);
      const auto [offset, bytes] = shards_->values(place.shard).payload(place.row);
      call(*shards_->map(place.shard), offset, bytes);
    }
  };
  // Data is usually cached, and then this should cost next to nothing: probe some records, and hint
  // at all of them only if one is missing.
  bool all_cached = true;
  each(kProbeEvery, [&](const MappedShard& shard, std::uint64_t offset, std::uint64_t bytes) {
    all_cached = all_cached && (bytes == 0 || shard.is_touched(offset) || is_cached(shard, offset));
  });
  if (!all_cached) each(1, start_reading);
}

std::optional<ImageSize> BatchFiller::original_size(const ColumnValues& values,
                                                    std::span<const std::byte> file,
                                                    std::uint64_t record) const {
  if (!size_column_) return std::nullopt;
  const std::span<const std::byte> bytes = values.named(file, *size_column_, record);
  const auto height = static_cast<std::uint32_t>(little_endian(bytes.first(4)));
  const auto width = static_cast<std::uint32_t>(little_endian(bytes.subspan(4, 4)));
  if (height == 0 || width == 0 || height > kLargestOriginal || width > kLargestOriginal) {
    return std::nullopt;
  }
  return ImageSize{height, width};
}

std::optional<ImageSize> BatchFiller::original_size(std::uint64_t sample) const {
  if (!size_column_) return std::nullopt;
  const ShardSet::Location place = shards_->locate(sample);
  const auto mapped = shards_->map(place.shard);
  const auto size = mapped->checked(
      [&] { return original_size(shards_->values(place.shard), mapped->bytes(), place.row); });
  mapped->check();
  return size;
}

void BatchFiller::fill_row(BatchBuffer& batch, std::size_t row, std::span<const std::byte> tensor,
                           const std::optional<ImageSize>& original, std::uint64_t seed) const {
  SampleKey key{seed, batch.epoch, batch.samples[row], batch.repeats[row], 0};
  const std::size_t rows = batch.samples.size();
  for (std::size_t view = 0; view < batch.passes->size(); ++view) {
    const ViewPass& pass = batch.passes->view(view);
    key.view = static_cast<std::uint32_t>(view);
    std::byte* const first = batch.buffer.data() + batch.passes->offset(view, rows);
    pass.run(tensor, key, original, first + row * pass.result().size_bytes(), stream_);
  }
}

std::uint64_t BatchFiller::fill(BatchBuffer& batch, std::size_t first, std::size_t count,
                                std::uint64_t seed) const {
  std::shared_ptr<const MappedShard> mapped;
  std::size_t mapped_shard = 0;
  std::uint64_t touched = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::uint64_t sample = batch.samples[i];
    const ShardSet::Location place = shards_->locate(sample);
    if (mapped == nullptr || place.shard != mapped_shard) {
      if (mapped != nullptr) mapped->check();  // after the reads, so that they are known to be good
      mapped = shards_->map(place.shard);
      mapped_shard = place.shard;
    }
    const ColumnValues& values = shards_->values(place.shard);
    const std::span<const std::byte> file = in_place_ ? in_place_(place.shard) : mapped->bytes();
    std::optional<ImageSize> original;
    batch.labels[i] = mapped->checked([&] {
      if (shards_->verify_on_read()) values.verify(file, place.row);
      original = original_size(values, file, place.row);
      if (!columns_.is_empty()) columns_.fill(batch, i, values, file, place.row, seed, original);
      return values.label(file, place.row);
    });
    batch.originals[i] = original.value_or(ImageSize());
    const auto [offset, bytes] = values.payload(place.row);
    if (in_place_) continue;
    touched += bytes;
    if (batch.view == nullptr) {
      fill_row(batch, i, file.subspan(offset, bytes), original, seed);
    }
  }
  if (batch.view != nullptr) {
    const std::byte* const begin = batch.data + first * batch.stride_bytes;
    batch.view->touch(static_cast<std::uint64_t>(begin - batch.view->bytes().data()),
                      (count - 1) * batch.stride_bytes + batch.spec.size_bytes());
  }
  if (stream_) finish_streaming();
  if (mapped != nullptr) mapped->check();
  return touched;
}

}  // namespace precache
