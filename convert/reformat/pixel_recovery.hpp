// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "precache/formats/normalization.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// Finds the pixels again that floats were made of.
///
/// A pixel has 256 values, so a tensor that was made of pixels by a known rule has at most 256
/// values a channel. Where these are distinct, nothing was lost when it was rounded, and any other
/// precision of it can be made as if from the image.
///
/// Immutable, so any number of threads may use one at once.
class PixelRecovery {
 public:
  /// `stored` is a float spec; `rule` made its values.
  PixelRecovery(const TensorSpec& stored, const Normalization& rule);

  /// Whether every pixel has a value of its own in every channel.
  [[nodiscard]] bool is_possible() const { return is_possible_; }
  /// Fills `pixels`, of the same shape and order; false if a value is none that a pixel gives.
  [[nodiscard]] bool run(std::span<const std::byte> tensor, std::span<std::uint8_t> pixels) const;

 private:
  struct Channel {
    float mean = 0;
    float std = 1;
    std::array<std::uint32_t, 256> bits{};  // of what each pixel becomes
  };

  template <typename Bits, typename ToFloat>
  [[nodiscard]] bool recover(std::span<const std::byte> tensor, std::span<std::uint8_t> pixels,
                             const ToFloat& to_float) const;

  TensorSpec stored_;
  std::array<Channel, 3> channels_;
  bool is_possible_ = true;
};

}  // namespace precache
