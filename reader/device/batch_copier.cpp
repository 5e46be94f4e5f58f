// SPDX-License-Identifier: Apache-2.0
#include "reader/device/batch_copier.hpp"

#include <algorithm>
#include <cstring>

#include "formats/bytes/checked_math.hpp"
#include "reader/loader/batch_pipeline.hpp"

namespace precache::device {
namespace {

// The alignment of cudaMalloc, which is more than any load needs.
constexpr std::uint64_t kAlignment = 256;
constexpr std::uint64_t kLargestNote = std::max(sizeof(RowKey), sizeof(AugmentationDraw));

}  // namespace

std::uint64_t BatchLayout::labels_at(std::uint64_t rows) const {
  return round_up(checked_mul(rows, row_bytes), kAlignment);
}

std::uint64_t BatchLayout::notes_at(std::uint64_t rows) const {
  return checked_add(labels_at(rows), round_up(rows * sizeof(std::int64_t), kAlignment));
}

std::uint64_t BatchLayout::bytes(std::uint64_t rows, std::uint64_t note_bytes) const {
  return note_bytes != 0 ? checked_add(notes_at(rows), rows * note_bytes)
                         : checked_add(labels_at(rows), rows * sizeof(std::int64_t));
}

BatchCopier::BatchCopier(std::shared_ptr<const ShardSet> shards, std::uint64_t largest_batch,
                         const RegisteredShards* registered, DevicePath path, int device)
    : shards_(std::move(shards)),
      largest_batch_(std::max<std::uint64_t>(largest_batch, 1)),
      registered_(registered),
      path_(path),
      device_(device) {
  stored_.row_bytes = shards_->spec()->size_bytes();
}

std::uint64_t BatchCopier::buffer_bytes() const {
  return stored_.bytes(largest_batch_, kLargestNote) - stored_.labels_at(largest_batch_) +
         tensor_bytes(largest_batch_);
}

void BatchCopier::add_plan(const TransformPlan& plan) {
  if (plan.is_copy() || input_ != nullptr) return;
  input_ = allocate_device(device_, stored_.bytes(largest_batch_, kLargestNote));
}

std::uint64_t BatchCopier::tensor_bytes(std::uint64_t rows) const {
  return registered_ == nullptr ? stored_.labels_at(rows) : 0;
}

std::uint64_t BatchCopier::note_bytes() const {
  if (plan_->is_copy()) return 0;
  return plan_->has_lists() ? sizeof(RowKey) : sizeof(AugmentationDraw);
}

void BatchCopier::prepare(Batch& batch, const OrderState& state,
                          std::shared_ptr<const TransformPlan> plan, const DeviceRing& ring,
                          std::size_t place) {
  plan_ = std::move(plan);
  seed_ = state.seed;
  epoch_ = state.epoch;
  buffer_ = batch.make_writable();
  to_ = plan_->is_copy() ? ring.memory(place) : input_.get();
  write_notes(batch, state, buffer_ + tensor_bytes(batch.size()));
  if (registered_ == nullptr) return;
  find_runs(batch.samples());
  strided_ = path_ == DevicePath::kStrided || (path_ == DevicePath::kAuto && runs_.size() == 1);
  if (!strided_) list_copies(batch.samples());
}

BatchCopier::Copied BatchCopier::copy(const Batch& batch, const DeviceRing& ring,
                                      std::size_t place) {
  const std::uint64_t rows = batch.size();
  const std::uint64_t labels_at = stored_.labels_at(rows);
  // Labels and notes come from the buffer; so do tensors, unless they come from registered shards.
  const std::uint64_t first = labels_at - tensor_bytes(rows);
  Copied copied;
  copied.bytes = stored_.bytes(rows, note_bytes()) - first;
  check(cudaMemcpyAsync(to_ + first, buffer_, copied.bytes, cudaMemcpyHostToDevice, ring.stream()),
        "cudaMemcpyAsync", device_);
  if (registered_ != nullptr) {
    copied.path = strided_ ? DevicePath::kStrided : DevicePath::kGather;
    copied.bytes += rows * stored_.row_bytes;
    strided_ ? copy_runs(ring.stream()) : gather(ring.stream());
  }
  copied.labels = reinterpret_cast<std::int64_t*>(ring.memory(place) + plan_->labels_at(rows));
  if (!plan_->is_copy()) run_kernels(rows, ring.memory(place), ring.stream());
  return copied;
}

void BatchCopier::run_kernels(std::uint64_t rows, std::byte* out, cudaStream_t stream) const {
  TransformPlan::Input input;
  input.tensors = to_;
  input.labels = reinterpret_cast<const std::int64_t*>(to_ + stored_.labels_at(rows));
  input.stored = rows;
  const std::byte* const notes = to_ + stored_.notes_at(rows);
  if (plan_->has_lists()) {
    input.keys = reinterpret_cast<const RowKey*>(notes);
  } else {
    input.choices = reinterpret_cast<const AugmentationDraw*>(notes);
  }
  input.samples = static_cast<std::uint32_t>(rows);
  input.seed = seed_;
  input.epoch = epoch_;
  plan_->launch(input, out, stream);
}

/// Writes the labels, and the draw or the key of each sample.
void BatchCopier::write_notes(const Batch& batch, const OrderState& state, std::byte* notes) const {
  const std::uint64_t rows = batch.size();
  std::memcpy(notes, batch.labels().data(), rows * sizeof(std::int64_t));
  if (plan_->is_copy()) return;
  std::byte* at = notes + stored_.notes_at(rows) - stored_.labels_at(rows);
  const std::span<const ImageSize> originals = BatchPipeline::original_sizes(batch);
  for (std::uint64_t i = 0; i < rows; ++i, at += note_bytes()) {
    const std::uint64_t sample = batch.samples()[i];
    const std::uint32_t repeat = batch.repeats()[i];
    if (plan_->has_lists()) {
      const RowKey key{sample, repeat, originals[i].height, originals[i].width};
      std::memcpy(at, &key, sizeof key);
    } else {
      const AugmentationDraw choice =
          plan_->passes().view(0).choose_plain({state.seed, state.epoch, sample, repeat, 0});
      std::memcpy(at, &choice, sizeof choice);
    }
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
