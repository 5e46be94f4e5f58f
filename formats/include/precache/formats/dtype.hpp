// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace precache {

/// Element type of a tensor.
enum class DType { kUint8, kFloat16, kBfloat16, kFloat32 };
inline constexpr std::array kAllDTypes{DType::kUint8, DType::kFloat16, DType::kBfloat16,
                                       DType::kFloat32};

[[nodiscard]] std::size_t size_bytes(DType dtype);
/// "uint8", "float16", "bfloat16", "float32".
[[nodiscard]] std::string_view name(DType dtype);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] DType parse_dtype(std::string_view name);

/// An IEEE 754 half by its bits, as tensors of DType::kFloat16 hold it.
struct Float16 {
  std::uint16_t bits = 0;
  /// Exact.
  [[nodiscard]] explicit operator float() const;
};

/// The upper half of a float by its bits, as tensors of DType::kBfloat16 hold it.
struct Bfloat16 {
  std::uint16_t bits = 0;
  /// Exact.
  [[nodiscard]] explicit operator float() const;
};

/// The C++ types of elements: std::uint8_t, Float16, Bfloat16, float.
template <typename T>
concept TensorElement = std::same_as<T, std::uint8_t> || std::same_as<T, Float16> ||
    std::same_as<T, Bfloat16> || std::same_as<T, float>;

template <TensorElement T>
inline constexpr DType kDTypeOf = std::same_as<T, std::uint8_t> ? DType::kUint8
                                  : std::same_as<T, Float16>    ? DType::kFloat16
                                  : std::same_as<T, Bfloat16>   ? DType::kBfloat16
                                                                : DType::kFloat32;

}  // namespace precache
