// SPDX-License-Identifier: Apache-2.0
#include "reader/device/batch_copier.hpp"

#include <algorithm>
#include <cstring>

#include "formats/bytes/checked_math.hpp"
#include "reader/device/pixel_kernel.hpp"
#include "reader/device/pixel_launch.hpp"

namespace precache::device {
namespace {

// The alignment of cudaMalloc, which is more than any load needs.
constexpr std::uint64_t kAlignment = 256;

}  // namespace

std::uint64_t BatchLayout::labels_at(std::uint64_t rows) const {
  return round_up(checked_mul(rows, row_bytes), kAlignment);
}

std::uint64_t BatchLayout::choices_at(std::uint64_t rows) const {
  return checked_add(labels_at(rows), round_up(rows * sizeof(std::int64_t), kAlignment));
}

std::uint64_t BatchLayout::bytes(std::uint64_t rows, bool with_choices) const {
  return with_choices ? checked_add(choices_at(rows), rows * sizeof(AugmentationDraw))
                      : checked_add(labels_at(rows), rows * sizeof(std::int64_t));
}

BatchCopier::BatchCopier(std::shared_ptr<const ShardSet> shards, const EpochPasses& passes,
                         std::uint64_t largest_batch, const RegisteredShards* registered,
                         DevicePath path, int device)
    : shards_(std::move(shards)),
      is_copy_(passes.is_always_copy()),
      largest_batch_(std::max<std::uint64_t>(largest_batch, 1)),
      registered_(registered),
      path_(path),
      device_(device) {
  const TensorSpec& stored = *shards_->spec();
  stored_.row_bytes = stored.size_bytes();
  largest_.row_bytes = passes.largest_row_bytes(0);
  if (is_copy_) return;
  work_ = pixel_work(stored, passes.at(0)->view(0).pass(), device);
  input_ = allocate_device(device, stored_.bytes(largest_batch_, true));
}

std::uint64_t BatchCopier::buffer_bytes() const {
  return stored_.bytes(largest_batch_, !is_copy_) - stored_.labels_at(largest_batch_) +
         tensor_bytes(largest_batch_);
}

std::uint64_t BatchCopier::tensor_bytes(std::uint64_t rows) const {
  return registered_ == nullptr ? stored_.labels_at(rows) : 0;
}

std::uint64_t BatchCopier::place_bytes() const { return largest_.bytes(largest_batch_, false); }

void BatchCopier::prepare(Batch& batch, const PixelPass& pass, const OrderState& state,
                          const DeviceRing& ring, std::size_t place) {
  buffer_ = batch.make_writable();
  result_.row_bytes = pass.result().size_bytes();
  work_.height = pass.result().height;
  work_.width = pass.result().width;
  to_ = is_copy_ ? ring.memory(place) : input_.get();
  write_notes(batch, pass, state, buffer_ + tensor_bytes(batch.size()));
  if (registered_ == nullptr) return;
  find_runs(batch.samples());
  strided_ = path_ == DevicePath::kStrided || (path_ == DevicePath::kAuto && runs_.size() == 1);
  if (!strided_) list_copies(batch.samples());
}

BatchCopier::Copied BatchCopier::copy(const Batch& batch, const DeviceRing& ring,
                                      std::size_t place) {
  const std::uint64_t rows = batch.size();
  const std::uint64_t labels_at = stored_.labels_at(rows);
  // Labels and draws come from the buffer; so do tensors, unless they come from registered shards.
  const std::uint64_t first = labels_at - tensor_bytes(rows);
  Copied copied;
  copied.bytes = stored_.bytes(rows, !is_copy_) - first;
  check(cudaMemcpyAsync(to_ + first, buffer_, copied.bytes, cudaMemcpyHostToDevice, ring.stream()),
        "cudaMemcpyAsync", device_);
  if (registered_ != nullptr) {
    copied.path = strided_ ? DevicePath::kStrided : DevicePath::kGather;
    copied.bytes += rows * stored_.row_bytes;
    strided_ ? copy_runs(ring.stream()) : gather(ring.stream());
  }
  copied.labels = reinterpret_cast<std::int64_t*>(ring.memory(place) + result_.labels_at(rows));
  if (is_copy_) return copied;
  work_.in = to_;
  work_.in_samples = rows;
  work_.out = ring.memory(place);
  work_.labels_in = reinterpret_cast<const std::int64_t*>(to_ + labels_at);
  work_.labels_out = copied.labels;
  work_.choices = reinterpret_cast<const AugmentationDraw*>(to_ + stored_.choices_at(rows));
  work_.samples = static_cast<std::uint32_t>(rows);
  check(launch_pixels(work_, ring.stream()), "cudaLaunchKernel", device_);
  return copied;
}

/// Writes the labels, and the draw of each sample.
void BatchCopier::write_notes(const Batch& batch, const PixelPass& pass, const OrderState& state,
                              std::byte* notes) const {
  const std::uint64_t rows = batch.size();
  std::memcpy(notes, batch.labels().data(), rows * sizeof(std::int64_t));
  if (is_copy_) return;
  std::byte* const choices = notes + stored_.choices_at(rows) - stored_.labels_at(rows);
  for (std::uint64_t i = 0; i < rows; ++i) {
    const AugmentationDraw choice = pass.choose(state.seed, state.epoch, batch.samples()[i]);
    std::memcpy(choices + i * sizeof choice, &choice, sizeof choice);
  }
}

const std::byte* BatchCopier::tensor_of(std::uint64_t sample) const {
  const ShardSet::Location place = shards_->locate(sample);
  return registered_->bytes(place.shard).data() +
         shards_->values(place.shard).payload(place.row).offset;
}

void BatchCopier::find_runs(std::span<const std::uint64_t> samples) {
  runs_.clear();
  for (std::size_t i = 0; i < samples.size();) {
    const ShardSet::Location first = shards_->locate(samples[i]);
    const ShardIndex& index = shards_->index(first.shard);
    const bool equal = index.places.empty();
    Run run{tensor_of(samples[i]), equal ? index.columns->image.stride : stored_.row_bytes, 1};
    const std::uint64_t most =
        equal ? std::min<std::uint64_t>(samples.size() - i, shards_->rows_from(first)) : 1;
    while (run.rows < most && samples[i + run.rows] == samples[i] + run.rows) ++run.rows;
    // CUDA also checks the pitch of a single row, and a manifest may give any value there.
    if (run.rows == 1) run.stride_bytes = stored_.row_bytes;
    i += run.rows;
    runs_.push_back(run);
  }
}

void BatchCopier::list_copies(std::span<const std::uint64_t> samples) {
  targets_.clear();
  sources_.clear();
  std::byte* to = to_;
  for (const std::uint64_t sample : samples) {
    sources_.push_back(tensor_of(sample));
    targets_.push_back(to);
    to += stored_.row_bytes;
  }
  sizes_.assign(samples.size(), stored_.row_bytes);
}

void BatchCopier::copy_runs(cudaStream_t stream) const {
  std::byte* to = to_;
  for (const Run& run : runs_) {
    check(cudaMemcpy2DAsync(to, stored_.row_bytes, run.data, run.stride_bytes, stored_.row_bytes,
                            run.rows, cudaMemcpyHostToDevice, stream),
          "cudaMemcpy2DAsync", device_);
    to += run.rows * stored_.row_bytes;
  }
}

void BatchCopier::gather(cudaStream_t stream) {
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;  // of the copies that have these attributes
  check(cudaMemcpyBatchAsync(targets_.data(), sources_.data(), sizes_.data(), sizes_.size(),
                             &attributes, &first, 1, stream),
        "cudaMemcpyBatchAsync", device_);
}

}  // namespace precache::device
