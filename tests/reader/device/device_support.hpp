// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "precache/reader/device_loader.hpp"
#include "tests/reader/device/run_kernel.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/fake_cudart/fake_cudart.hpp"

namespace precache::test {

/// A new machine for each test. Its destructor checks that nothing leaked and that no rule of CUDA
/// was broken.
class FakeMachine {
 public:
  explicit FakeMachine(int devices = 1) {
    fake_cudart::reset();
    fake_cudart::set_device_count(devices);
    fake_cudart::set_delays(1, 20);
    register_kernels();
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;
  ~FakeMachine() {
    CHECK(fake_cudart::report() == "");
    fake_cudart::reset();
  }
};

/// The stream of a consumer.
class UserStream {
 public:
  UserStream() {
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess);
  }
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;
  ~UserStream() {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// The content of a batch as a consumer sees it; the images of all views, one view after another.
struct SeenBatch {
  Bytes images;
  std::vector<std::int64_t> labels;
  std::vector<std::uint64_t> samples;
  bool operator==(const SeenBatch&) const = default;
};

/// Uses a batch like a training step: on a stream, without a wait of the host, then releases it
/// there. The content is known when the stream is done.
class Consumer {
 public:
  void take(DeviceBatch batch) {
    Taken& taken = taken_.emplace_back();
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < batch.views(); ++i) {
      bytes += batch.size() * batch.view_spec(i).size_bytes();
    }
    taken.samples.assign(batch.samples().begin(), batch.samples().end());
    taken.image_bytes = bytes;
    REQUIRE(cudaHostAlloc(&taken.images, bytes, cudaHostAllocDefault) == cudaSuccess);
    REQUIRE(cudaHostAlloc(&taken.labels, batch.size() * 8, cudaHostAllocDefault) == cudaSuccess);
    batch.wait_on(stream_.get());
    auto* to = static_cast<std::byte*>(taken.images);
    for (std::size_t i = 0; i < batch.views(); ++i) {
      const std::size_t view_bytes = batch.size() * batch.view_spec(i).size_bytes();
      REQUIRE(cudaMemcpyAsync(to, batch.view_images(i), view_bytes, cudaMemcpyDeviceToHost,
                              stream_.get()) == cudaSuccess);
      to += view_bytes;
    }
    REQUIRE(cudaMemcpyAsync(taken.labels, batch.labels(), batch.size() * 8, cudaMemcpyDeviceToHost,
                            stream_.get()) == cudaSuccess);
    batch.release(stream_.get());
  }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  /// The content of all batches, after a wait for the stream.
  std::vector<SeenBatch> finish() {
    REQUIRE(cudaStreamSynchronize(stream_.get()) == cudaSuccess);
    std::vector<SeenBatch> seen;
    for (Taken& taken : taken_) {
      const auto* const images = static_cast<const std::byte*>(taken.images);
      const auto* const labels = static_cast<const std::int64_t*>(taken.labels);
      seen.push_back({Bytes(images, images + taken.image_bytes),
                      {labels, labels + taken.samples.size()},
                      std::move(taken.samples)});
      (void)cudaFreeHost(taken.images);
      (void)cudaFreeHost(taken.labels);
    }
    taken_.clear();
    return seen;
  }
  ~Consumer() { (void)finish(); }

 private:
  struct Taken {
    void* images = nullptr;
    void* labels = nullptr;
    std::size_t image_bytes = 0;
    std::vector<std::uint64_t> samples;
  };
  UserStream stream_;
  std::vector<Taken> taken_;
};

/// The rest of an epoch.
inline std::vector<SeenBatch> epoch_of(DeviceLoader& loader) {
  Consumer consumer;
  while (auto batch = loader.next()) consumer.take(std::move(*batch));
  return consumer.finish();
}

inline std::vector<SeenBatch> epoch_of(Loader& loader) {
  std::vector<SeenBatch> seen;
  while (const auto batch = loader.next()) {
    SeenBatch& one = seen.emplace_back();
    for (std::size_t view = 0; view < batch->views(); ++view) {
      const BatchView rows = batch->view(view);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        one.images.insert(one.images.end(), rows[i].begin(), rows[i].end());
      }
    }
    one.labels.assign(batch->labels().begin(), batch->labels().end());
    one.samples.assign(batch->samples().begin(), batch->samples().end());
  }
  return seen;
}

/// Options that let all shards be pinned.
inline DeviceOptions by_path(DevicePath path) {
  DeviceOptions options;
  options.pin_shards_up_to_bytes = std::uint64_t{1} << 30;
  options.device_path = path;
  return options;
}

}  // namespace precache::test
