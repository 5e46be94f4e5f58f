// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace precache::device {

/// The samples of a batch. Those of a resident batch are chosen on the device; the host computes
/// them only if it is asked for them. Any number of threads may ask.
class SampleList {
 public:
  explicit SampleList(std::function<std::vector<std::uint64_t>()> compute)
      : compute_(std::move(compute)) {}
  [[nodiscard]] static std::shared_ptr<SampleList> of(std::vector<std::uint64_t> samples) {
    auto list = std::make_shared<SampleList>(nullptr);
    list->samples_ = std::move(samples);
    return list;
  }
  [[nodiscard]] std::span<const std::uint64_t> get() {
    std::call_once(once_, [this] {
      if (compute_) samples_ = compute_();
    });
    return samples_;
  }

 private:
  std::function<std::vector<std::uint64_t>()> compute_;
  std::once_flag once_;
  std::vector<std::uint64_t> samples_;
};

}  // namespace precache::device
