// SPDX-License-Identifier: Apache-2.0
#include "reader/device/resident_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"
#include "reader/device/pinned_buffers.hpp"
#include "reader/loader/batch_pipeline.hpp"

namespace precache::device {
namespace {

constexpr std::uint64_t kPieceBytes = 32 << 20;  // long enough for the full rate of the link
constexpr std::size_t kPiecesAhead = 2;

/// A loader of the stored tensors, in their order.
LoaderOptions in_pieces(std::uint64_t row_bytes, unsigned threads) {
  LoaderOptions options;
  options.batch_size = std::max<std::uint64_t>(1, kPieceBytes / row_bytes);
  options.last_batch = LastBatch::kKeep;
  options.threads = threads;
  options.prefetch = kPiecesAhead;
  options.writable = true;  // views are not pinned
  return options;
}

}  // namespace

ResidentSet::ResidentSet(const std::shared_ptr<const ShardSet>& shards, unsigned threads,
                         std::uint64_t most_bytes, int device) {
  const std::uint64_t row_bytes = shards->spec()->size_bytes();
  const std::uint64_t samples = shards->samples();
  bytes_ = checked_mul(samples, checked_add(row_bytes, sizeof(std::int64_t)));
  if (bytes_ > most_bytes) {
    throw InvalidArgument(
        fmt::format("`device_path` resident needs {} bytes on the device for {} samples, and "
                    "`resident_up_to_bytes` is {}",
                    bytes_, samples, most_bytes),
        "Raise `resident_up_to_bytes` if the device has the memory, or use another `device_path`.");
  }
  if (samples == 0) return;
  tensors_ = allocate_device(device, samples * row_bytes);
  labels_ = allocate_device(device, samples * sizeof(std::int64_t));
  upload(shards, threads, device);
}

void ResidentSet::upload(const std::shared_ptr<const ShardSet>& shards, unsigned threads,
                         int device) {
  const std::uint64_t row_bytes = shards->spec()->size_bytes();
  const LoaderOptions options = in_pieces(row_bytes, threads);
  const Stream stream = make_stream(device);
  // One for each piece that is read ahead, one that is being copied, and one that is taken.
  PinnedBuffers pinned(device, kPiecesAhead + 2,
                       largest_batch(options, shards->samples()) * row_bytes);
  BatchPipeline pieces(shards, options, {[&] { return pinned.take(); }, {}});
  std::vector<std::int64_t> labels;
  labels.reserve(shards->samples());
  while (const auto piece = pieces.next()) {
    check(cudaMemcpyAsync(tensors_.get() + labels.size() * row_bytes, piece->data(),
                          piece->size() * row_bytes, cudaMemcpyHostToDevice, stream.get()),
          "cudaMemcpyAsync", device);
    const auto sizes = BatchPipeline::original_sizes(*piece);
    originals_.insert(originals_.end(), sizes.begin(), sizes.end());
    labels.insert(labels.end(), piece->labels().begin(), piece->labels().end());
    // The threads read the next pieces meanwhile.
    check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize", device);
  }
  const auto is_unknown = [](const ImageSize& size) { return size == ImageSize(); };
  if (std::ranges::all_of(originals_, is_unknown)) originals_ = {};
  check(cudaMemcpy(labels_.get(), labels.data(), labels.size() * sizeof(std::int64_t),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy", device);
}

}  // namespace precache::device
