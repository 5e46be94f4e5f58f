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

/// How the tensors of a batch reach the GPU (docs/gpu.md).
enum class DevicePath {
  kAuto,     // in place where the dataset may be registered, else staged
  kStaged,   // gathered by threads into pinned memory, then one copy
  kStrided,  // in place: one copy of equally distant rows for each run of neighbours
  kGather,   // in place: one call that copies every row from where it lies
};

/// "auto", "staged", "strided", "gather".
[[nodiscard]] std::string_view name(DevicePath path);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] DevicePath parse_device_path(std::string_view name);

struct DeviceOptions {
  int device = 0;  // as CUDA counts them
  /// Batches on the device: those that the consumer holds, and those that are on their way.
  std::size_t device_batches = 3;
  /// Anything but kAuto is what is done or an error, never something else.
  DevicePath device_path = DevicePath::kAuto;
  /// Shards are pinned (registered with CUDA), all or none, if they are no larger together. That
  /// takes as much memory, which cannot be swapped out, and the time to read them when the loader
  /// is made. The default, 0, pins none, so kAuto uses kStaged. Every loader pins for itself, in
  /// every process: what all of them may take has to fit into memory.
  std::uint64_t pin_shards_up_to_bytes = 0;
};

/// Tensors and labels of some samples in the memory of a GPU.
///
/// The data is valid once ready_event() has completed: make the stream that uses it wait with
/// wait_on(), and give the memory back with release() when the last use is on a stream. Streams are
/// `cudaStream_t`, events `cudaEvent_t`, of the loader's device. A batch may be used and released
/// on any thread, and outlive its loader. In a forked process wait_on(), wait(), release() and the
/// exports throw InvalidArgument, and dropping it or its tensors does nothing. Views of a temporary
/// batch do not compile.
///
///     while (auto batch = loader.next()) {
///       batch->wait_on(stream);
///       train<<<..., stream>>>(batch->as<float>(), batch->labels(), batch->size());
///       batch->release(stream);
///     }
class DeviceBatch {
 public:
  DeviceBatch(DeviceBatch&&) noexcept;
  DeviceBatch& operator=(DeviceBatch&&) noexcept;
  /// Without release(), waits until the device has nothing to do.
  ~DeviceBatch();

  [[nodiscard]] std::size_t size() const { return parts_.samples.size(); }
  /// What each row is; rows follow each other without a gap.
  [[nodiscard]] TensorSpec spec() const { return parts_.spec; }
  /// The elements of all rows, on the device, aligned to 256 bytes. Throws InvalidArgument if they
  /// are not of type T.
  template <TensorElement T>
  [[nodiscard]] T* as() const& {
    return static_cast<T*>(images_of(kDTypeOf<T>));
  }
  template <TensorElement T>
  T* as() const&& = delete;
  /// The same, of any type.
  [[nodiscard]] void* images() const& { return parts_.images; }
  void* images() const&& = delete;
  /// On the device: an int64 for each sample, -1 where there is none.
  [[nodiscard]] std::int64_t* labels() const& { return parts_.labels; }
  std::int64_t* labels() const&& = delete;
  /// Which samples of the dataset these are.
  [[nodiscard]] std::span<const std::uint64_t> samples() const& { return parts_.samples; }
  std::span<const std::uint64_t> samples() const&& = delete;
  [[nodiscard]] int device() const { return parts_.device; }
  /// Which way it took; never kAuto.
  [[nodiscard]] DevicePath path() const { return parts_.path; }

  /// The event after which images and labels are there.
  [[nodiscard]] CUevent_st* ready_event() const& { return parts_.ready_event; }
  CUevent_st* ready_event() const&& = delete;
  /// What is put on `stream` from now on comes after that event. Throws DeviceError.
  void wait_on(CUstream_st* stream) const;
  /// Waits for the event on the host. Throws DeviceError.
  void wait() const;
  /// Ends the use of this batch: the memory is used again after what is on `stream` now. Throws
  /// DeviceError, and InvalidArgument if the batch was released or a tensor of it is held.
  void release(CUstream_st* stream);

  enum class Part { kImages, kLabels };
  /// A tensor (kDLCUDA) that holds the batch until its deleter is called, whatever becomes of this
  /// object. `stream` is the consumer's: it waits for the data, and the memory is used again after
  /// what is on it when the last holder is gone: it must outlive the tensor, and be the same for
  /// every thread (not cudaStreamPerThread). Uses on other streams must be ordered before that.
  /// Throws as release() does.
  [[nodiscard]] DLManagedTensor* to_dlpack(Part part, CUstream_st* stream) const;
  /// The same, for consumers of DLPack 1.0 and later.
  [[nodiscard]] DLManagedTensorVersioned* to_dlpack_versioned(Part part, CUstream_st* stream) const;

 private:
  friend class DeviceLoader;
  struct Parts {
    TensorSpec spec;
    std::vector<std::uint64_t> samples;
    void* images = nullptr;
    std::int64_t* labels = nullptr;
    CUevent_st* ready_event = nullptr;
    int device = 0;
    DevicePath path = DevicePath::kStaged;
  };
  struct Holder;
  DeviceBatch(Parts parts, std::unique_ptr<DeviceLease> lease);
  [[nodiscard]] void* images_of(DType asked) const;
  [[nodiscard]] Holder& holder() const;
  template <typename Managed>
  [[nodiscard]] Managed* make_dlpack(Part part, CUstream_st* stream) const;

  Parts parts_;
  std::shared_ptr<Holder> holder_;
};

/// What was loaded, and how, since the loader was made.
struct DeviceStats {
  std::uint64_t batches = 0;  // returned
  std::uint64_t staged = 0;   // of those that were put on the device, returned or not
  std::uint64_t strided = 0;
  std::uint64_t gathered = 0;
  std::uint64_t bytes_copied = 0;             // to the device
  std::uint64_t bytes_registered = 0;         // of shards
  std::chrono::nanoseconds device_waited{0};  // in next(), for copies that were not done
  /// Why batches take the path they take, a sentence.
  std::string reason;
  /// Of the loader that reads for this one; `batches` is what that handed over.
  LoaderStats host;
};

/// A Loader whose batches lie in the memory of a GPU, put there ahead of their use.
///
/// Order, seeds, ranks, epochs and pixels are those of a Loader with the same options, bit for bit.
/// Crop, flip, normalisation, cast and order of axes are done on the device. Copies have their own
/// stream, and wait there, not here, until the memory of an earlier batch is released; next()
/// itself waits for the disk, and for the device only where that is `device_batches` batches late.
/// Use one loader from one thread at a time; several devices need several loaders. The caller's
/// current device is left as it is. In a forked process every call throws InvalidArgument.
class DeviceLoader {
 public:
  /// Throws what Loader's constructor throws; Unsupported if this build has no CUDA, there is no
  /// driver or GPU, or there is work for the kernel and the build has none for this GPU;
  /// InvalidArgument for a device or path that cannot be; DeviceError.
  DeviceLoader(Dataset dataset, const LoaderOptions& options, const DeviceOptions& device = {});
  DeviceLoader(DeviceLoader&&) noexcept;
  DeviceLoader& operator=(DeviceLoader&&) noexcept;
  ~DeviceLoader();

  /// The next batch, or none at the end of the epoch; the call after that begins the next epoch.
  /// Throws as Loader::next does; InvalidArgument if the consumer holds all
  /// `device_batches`; DeviceError, and then all memory but that of batches that are held is freed
  /// and every call throws the same.
  [[nodiscard]] std::optional<DeviceBatch> next();
  /// Blocks until next() need not wait for the disk or `time` has passed; false if it would still
  /// wait. Lets a caller look for something else meanwhile, such as Ctrl-C.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time);

  /// As of a Loader, counted in batches that next() returned.
  [[nodiscard]] std::uint64_t batches_per_epoch() const;
  [[nodiscard]] std::uint64_t batches_left() const;
  [[nodiscard]] std::uint64_t epoch() const;
  void set_epoch(std::uint64_t epoch);
  [[nodiscard]] OrderState state() const;
  void resume(const OrderState& state);

  /// What each row of a batch is.
  [[nodiscard]] TensorSpec spec() const;
  [[nodiscard]] DeviceStats stats() const;
  /// Options that work but will not do what was probably meant, each a sentence.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  class Impl;
  /// Throws InvalidArgument in a process that was forked since.
  [[nodiscard]] Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace precache
