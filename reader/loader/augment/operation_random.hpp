// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/bytes/host_device.hpp"
#include "formats/bytes/splitmix.hpp"

namespace precache {

/// Which samples an operation draws for. Two epochs, samples, repeats or views have nothing in
/// common.
struct SampleKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;  // index in the dataset
  std::uint32_t repeat = 0;  // of the sample in its epoch
  std::uint32_t view = 0;
};

/// The identity of an operation in its list: its name, and how many of the same name are before it.
/// Operations of other names make no difference, so they can be added and removed.
struct OperationKey {
  std::uint64_t name_hash = 0;  // hash_name()
  std::uint64_t ordinal = 0;
};

/// FNV-1a with 64 bits.
[[nodiscard]] constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3U;
  }
  return hash;
}

/// The numbers that one operation draws for one sample: a counter-based sequence, the same on every
/// machine. docs/reader.md specifies it.
class OperationRandom {
 public:
  PRECACHE_HOST_DEVICE OperationRandom(const SampleKey& key, const OperationKey& operation)
      : state_(combine(combine(combine(combine(key.seed, key.epoch), ~key.sample),
                               std::uint64_t{key.view} << 32 | key.repeat),
                       operation.name_hash + operation.ordinal)) {}

  PRECACHE_HOST_DEVICE std::uint64_t bits() {
    state_ += kGoldenGamma;
    return splitmix(state_);
  }
  /// In [0, 1), with 53 bits.
  PRECACHE_HOST_DEVICE double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// In [from, to]; the end only by rounding.
  PRECACHE_HOST_DEVICE double uniform(double from, double to) {
    return from + (to - from) * uniform();
  }
  /// In [0, end).  REQUIRES: end > 0.
  PRECACHE_HOST_DEVICE std::uint64_t below(std::uint64_t end) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits()) * end) >> 64);
  }
  /// True with probability p.
  PRECACHE_HOST_DEVICE bool chance(double p) { return uniform() < p; }
  /// Writes 0, 1, ..., count - 1 in random order, each as likely (Fisher and Yates, from the end).
  PRECACHE_HOST_DEVICE void permute(std::uint8_t* order, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<std::uint8_t>(i);
    for (std::size_t i = count; i > 1; --i) {
      const auto other = static_cast<std::size_t>(below(i));
      const std::uint8_t last = order[i - 1];
      order[i - 1] = order[other];
      order[other] = last;
    }
  }
  template <std::size_t kCount>
  std::array<std::uint8_t, kCount> permutation() {
    std::array<std::uint8_t, kCount> order;
    permute(order.data(), kCount);
    return order;
  }

 private:
  // Not symmetric, so that (seed 1, epoch 2) and (seed 2, epoch 1) have nothing in common.
  PRECACHE_HOST_DEVICE static constexpr std::uint64_t combine(std::uint64_t key,
                                                              std::uint64_t value) {
    return splitmix(splitmix(key + kGoldenGamma) ^ (value + kGoldenGamma));
  }

  std::uint64_t state_;
};

}  // namespace precache
