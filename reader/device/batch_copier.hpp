// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reader/device/device_ring.hpp"
#include "reader/device/registered_shards.hpp"
#include "reader/device/transform_plan.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache::device {

/// The offsets of a batch's stored tensors, labels and notes in one piece of memory. The notes
/// tell the kernels the draw or the key of each row.
///
/// They are the same on host and device, so that one copy moves everything.
struct BatchLayout {
  std::uint64_t row_bytes = 0;

  [[nodiscard]] std::uint64_t labels_at(std::uint64_t rows) const;
  [[nodiscard]] std::uint64_t notes_at(std::uint64_t rows) const;
  /// The size with notes of so many bytes for each row.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t rows, std::uint64_t note_bytes) const;
};

/// Puts the copies of batches on a device's stream, and the kernels if there is a transform.
class BatchCopier {
 public:
  /// Copies tensors from `registered` if it is set, else from the batches, which hold them
  /// gathered. REQUIRES: `registered` outlives this.
  BatchCopier(std::shared_ptr<const ShardSet> shards, std::uint64_t largest_batch,
              const RegisteredShards* registered, DevicePath path, int device);

  /// The size of a host buffer for one batch.
  [[nodiscard]] std::uint64_t buffer_bytes() const;
  /// Prepares for batches of this plan, too. Throws DeviceError.
  /// REQUIRES: the device is the current one.
  void add_plan(const TransformPlan& plan);

  struct Copied {
    DevicePath path = DevicePath::kStaged;
    std::uint64_t bytes = 0;
    std::int64_t* labels = nullptr;  // on the device
  };
  /// Does the part of copy() that may run out of memory, before any copy starts. The batch has
  /// stored tensors of the epoch and seed of `state`.
  void prepare(Batch& batch, const OrderState& state, std::shared_ptr<const TransformPlan> plan,
               const DeviceRing& ring, std::size_t place);
  /// Copies the batch that was prepared last. Uses its buffer until the place is ready. Throws only
  /// DeviceError.
  /// REQUIRES: the ring's device is the current one.
  Copied copy(const Batch& batch, const DeviceRing& ring, std::size_t place);

 private:
  /// Rows of the batch at equal distances in one shard.
  struct Run {
    const std::byte* data = nullptr;
    std::uint64_t stride_bytes = 0;
    std::uint64_t rows = 0;
  };
  /// The bytes of tensors in a host buffer, before the labels.
  [[nodiscard]] std::uint64_t tensor_bytes(std::uint64_t rows) const;
  [[nodiscard]] std::uint64_t note_bytes() const;
  void find_runs(std::span<const std::uint64_t> samples);
  void write_notes(const Batch& batch, const OrderState& state, std::byte* notes) const;
  void run_kernels(std::uint64_t rows, std::byte* out, cudaStream_t stream) const;
  void list_copies(std::span<const std::uint64_t> samples);
  void copy_runs(cudaStream_t stream) const;
  void gather(cudaStream_t stream);
  [[nodiscard]] const std::byte* tensor_of(std::uint64_t sample) const;

  std::shared_ptr<const ShardSet> shards_;
  std::uint64_t largest_batch_;
  const RegisteredShards* registered_;
  DevicePath path_;
  int device_;
  BatchLayout stored_;
  // A stored batch; none without a transform. One is enough: the stream runs in order.
  DeviceMemory input_;
  // The batch that was prepared last:
  std::shared_ptr<const TransformPlan> plan_;
  std::uint64_t seed_ = 0;
  std::uint64_t epoch_ = 0;
  std::byte* buffer_ = nullptr;
  std::byte* to_ = nullptr;  // on the device
  bool strided_ = false;
  std::vector<Run> runs_;
  std::vector<void*> targets_;
  std::vector<const void*> sources_;
  std::vector<std::size_t> sizes_;
};

}  // namespace precache::device
