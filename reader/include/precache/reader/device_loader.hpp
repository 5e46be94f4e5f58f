// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/dataset.hpp"
#include "precache/reader/loader.hpp"
#include "precache/reader/order.hpp"

struct CUevent_st;       // cudaEvent_t is a pointer to it
struct CUstream_st;      // cudaStream_t is a pointer to it
struct DLManagedTensor;  // of dlpack.h
struct DLManagedTensorVersioned;

namespace precache {

class DeviceLease;
namespace device {
class SampleList;
}

/// How the tensors of a batch reach the GPU (docs/gpu.md).
enum class DevicePath {
  kAuto,      // kStrided or kGather if the shards can be pinned, else kStaged
  kStaged,    // threads gather the tensors in pinned memory, then one copy moves them
  kStrided,   // from pinned shards: one strided copy for each run of neighbours
  kGather,    // from pinned shards: one call that copies every row
  kResident,  // the dataset is on the GPU, which makes batches without the host
};

/// "auto", "staged", "strided", "gather", "resident".
[[nodiscard]] std::string_view name(DevicePath path);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] DevicePath parse_device_path(std::string_view name);

/// Which GPU gets the batches, and how.
struct DeviceOptions {
  int device = 0;  // CUDA's number of the GPU
  /// Batches on the device: those that the consumer holds, and those that are being copied.
  std::size_t device_batches = 3;
  /// A path other than kAuto is used or refused with an error, never replaced by another. kAuto
  /// never is kResident.
  DevicePath device_path = DevicePath::kAuto;
  /// Pins all shards (registers them with CUDA) if their total size is at most this. Pinned shards
  /// take as much memory, which cannot be swapped out, and are read when the loader is made. The
  /// default, 0, pins none, so kAuto uses kStaged. Every loader of every process pins its own
  /// copy: the sum must fit into memory.
  std::uint64_t pin_shards_up_to_bytes = 0;
  /// For kResident: the most memory that the stored tensors and labels may take on the device. A
  /// larger dataset is refused.
  std::uint64_t resident_up_to_bytes = std::uint64_t{8} << 30;
};

/// Tensors and labels of some samples in the memory of a GPU.
///
/// The data is valid once ready_event() has completed: make the stream that uses it wait with
/// wait_on(), and call release() once the last use is on a stream. The destructor of a batch that
/// was not released waits until the device is idle. Streams are `cudaStream_t`, events
/// `cudaEvent_t`, of the loader's device. Any thread may use and release a batch, and it may
/// outlive its loader. In a forked process wait_on(), wait(), release() and the exports throw
/// InvalidArgument, and destructors do nothing. Views of a temporary batch do not compile.
///
///     while (auto batch = loader.next()) {
///       batch->wait_on(stream);
///       train<<<..., stream>>>(batch->as<float>(), batch->labels(), batch->size());
///       batch->release(stream);
///     }
class DeviceBatch {
 public:
  /// The number of samples.
  [[nodiscard]] std::size_t size() const { return parts_.size; }
  /// The type and shape of each row. Rows follow each other without a gap.
  [[nodiscard]] TensorSpec spec() const { return parts_.spec; }
  /// The elements of all rows, on the device, aligned to 256 bytes. Throws InvalidArgument if their
  /// type is not T.
  template <TensorElement T>
  [[nodiscard]] T* as() const& {
    return static_cast<T*>(images_of(kDTypeOf<T>));
  }
  template <TensorElement T>
  T* as() const&& = delete;
  /// The same for any type.
  [[nodiscard]] void* images() const& { return parts_.images; }
  void* images() const&& = delete;
  /// On the device: a label for each sample, -1 if it has none.
  [[nodiscard]] std::int64_t* labels() const& { return parts_.labels; }
  std::int64_t* labels() const&& = delete;
  /// The number of tensors of each sample: BatchTransform::views, or one. The functions above
  /// return those of view 0.
  [[nodiscard]] std::size_t views() const { return 1 + parts_.more_views.size(); }
  /// The type and shape of each row of one view.  REQUIRES: view < views().
  [[nodiscard]] TensorSpec view_spec(std::size_t view) const {
    return view == 0 ? parts_.spec : parts_.more_views[view - 1].spec;
  }
  /// The tensors of one view, on the device, aligned to 256 bytes.  REQUIRES: view < views().
  [[nodiscard]] void* view_images(std::size_t view) const& {
    return view == 0 ? parts_.images : parts_.more_views[view - 1].images;
  }
  void* view_images(std::size_t view) const&& = delete;
  /// The indices of the samples in the dataset. On the resident path they are computed by the first
  /// call.
  [[nodiscard]] std::span<const std::uint64_t> samples() const&;
  std::span<const std::uint64_t> samples() const&& = delete;
  /// CUDA's number of the GPU that has the data.
  [[nodiscard]] int device() const { return parts_.device; }
  /// The path that was used, never kAuto.
  [[nodiscard]] DevicePath path() const { return parts_.path; }

  /// Completes when images and labels are on the device.
  [[nodiscard]] CUevent_st* ready_event() const& { return parts_.ready_event; }
  CUevent_st* ready_event() const&& = delete;
  /// Makes later work on `stream` wait for that event. Throws DeviceError.
  void wait_on(CUstream_st* stream) const;
  /// Blocks the calling thread until that event. Throws DeviceError.
  void wait() const;
  /// Ends the use of this batch: its memory is used again after the work that is on `stream` now.
  /// Throws DeviceError, and InvalidArgument if the batch was released or a tensor of it is held.
  void release(CUstream_st* stream);

  enum class Part { kImages, kLabels };
  /// A tensor (kDLCUDA) that keeps the memory of the batch until its deleter is called, even after
  /// this object is gone. `stream` is the consumer's. It waits for the data; once the batch and all
  /// its tensors are gone, the memory is used again after the work that is then on `stream`. So
  /// `stream` must outlive the tensor and be the same in every thread (not cudaStreamPerThread),
  /// and uses on other streams must be ordered before that work. Throws the exceptions of
  /// release(). `view` is that of the images.  REQUIRES: view < views().
  [[nodiscard]] DLManagedTensor* to_dlpack(Part part, CUstream_st* stream,
                                           std::size_t view = 0) const;
  /// The same, for consumers of DLPack 1.0 and later.
  [[nodiscard]] DLManagedTensorVersioned* to_dlpack_versioned(Part part, CUstream_st* stream,
                                                              std::size_t view = 0) const;

 private:
  friend class DeviceLoader;
  struct View {
    TensorSpec spec;
    void* images = nullptr;
  };
  struct Parts {
    TensorSpec spec;
    std::size_t size = 0;
    std::shared_ptr<device::SampleList> samples;
    void* images = nullptr;
    std::int64_t* labels = nullptr;
    CUevent_st* ready_event = nullptr;
    int device = 0;
    DevicePath path = DevicePath::kStaged;
    std::vector<View> more_views{};
  };
  DeviceBatch(Parts parts, std::shared_ptr<DeviceLease> lease)
      : parts_(std::move(parts)), lease_(std::move(lease)) {}
  [[nodiscard]] void* images_of(DType asked) const;
  [[nodiscard]] DeviceLease& lease() const;
  template <typename Managed>
  [[nodiscard]] Managed* make_dlpack(Part part, CUstream_st* stream, std::size_t view) const;

  Parts parts_;
  std::shared_ptr<DeviceLease> lease_;  // none: released
};

/// Counts of the batches that were loaded since the loader was made.
struct DeviceStats {
  std::uint64_t batches = 0;  // returned
  std::uint64_t staged = 0;   // copied to the device by each path, returned or not
  std::uint64_t strided = 0;
  std::uint64_t gathered = 0;
  std::uint64_t resident = 0;                 // made on the device, of the resident dataset
  std::uint64_t bytes_copied = 0;             // to the device
  std::uint64_t bytes_registered = 0;         // of shards
  std::uint64_t bytes_resident = 0;           // of stored tensors and labels on the device
  std::chrono::nanoseconds device_waited{0};  // by next(), for unfinished copies
  /// A sentence that says why batches take their path.
  std::string reason;
  /// The stats of the part that reads; `batches` is the number that it passed on.
  LoaderStats host;
};

/// A Loader whose batches are in the memory of a GPU, copied there ahead of their use.
///
/// Order, seeds, ranks, epochs and pixels are those of a Loader with the same options, bit for bit.
/// The device runs the operations of lists (not all: docs/gpu.md), crops, flips, normalises, casts
/// and reorders the axes. Copies have their own stream and wait there until the memory of an
/// earlier batch is released. On the resident path the constructor copies the whole dataset; after
/// that, the device also chooses the samples and draws, and the host only launches kernels. next()
/// waits for storage, and for the device only if the device has fallen `device_batches`
/// batches behind. Several devices need several loaders. The caller's current device does not
/// change.
class DeviceLoader : public LoaderBase {
 public:
  /// Throws the exceptions of Loader's constructor; Unsupported if the build has no CUDA, the
  /// machine has no driver or no GPU, or the transform needs a kernel that the build does not have;
  /// InvalidArgument for a device or path that does not exist or does not fit; DeviceError.
  DeviceLoader(const Dataset& dataset, const LoaderOptions& options,
               const DeviceOptions& device = {});

  /// The next batch, or none at the end of the epoch; the call after that begins the next epoch.
  /// Throws the exceptions of Loader::next; InvalidArgument if the consumer holds all
  /// `device_batches`; DeviceError, which frees all memory except that of batches that are held,
  /// and which every later call throws again.
  [[nodiscard]] std::optional<DeviceBatch> next();
  /// The counts up to now.
  [[nodiscard]] DeviceStats stats() const;

 private:
  class Impl;
  class Copying;
  class Resident;
  static std::unique_ptr<LoaderCore> make_core(const Dataset& dataset, const LoaderOptions& options,
                                               const DeviceOptions& device);
  [[nodiscard]] Impl& impl() const;
};

}  // namespace precache
