// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
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

}  // namespace precache
