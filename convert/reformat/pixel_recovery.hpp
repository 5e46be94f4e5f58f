// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "precache/formats/normalization.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// Recovers the pixels from which floats were made.
///
/// A pixel has 256 values, so a tensor that a known rule made from pixels has at most 256 values
/// per channel. If these are distinct, rounding has lost nothing, and any other precision can be
/// made as if from the image.
///
/// Immutable, so any number of threads may use one at once.
class PixelRecovery {
 public:
  /// `stored` is a float spec; `rule` made its values.
  PixelRecovery(const TensorSpec& stored, const Normalization& rule);

  /// Whether the values of all pixels are distinct in every channel.
  [[nodiscard]] bool is_possible() const { return is_possible_; }
  /// Fills `pixels`, of the same shape and order; false if no pixel gives one of the values.
  [[nodiscard]] bool run(std::span<const std::byte> tensor, std::span<std::uint8_t> pixels) const;

 private:
  struct Channel {
    float mean = 0;
    float std = 1;
    std::array<std::uint32_t, 256> bits{};  // of the value of each pixel
  };

  template <typename Bits, typename ToFloat>
  [[nodiscard]] bool recover(std::span<const std::byte> tensor, std::span<std::uint8_t> pixels,
                             const ToFloat& to_float) const;

  TensorSpec stored_;
  std::array<Channel, 3> channels_;
  bool is_possible_ = true;
};

}  // namespace precache
