// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/tensor_spec.hpp"

#include <fmt/format.h>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/half_float.hpp"

namespace precache {

std::size_t size_bytes(DType dtype) {
  return dtype == DType::kUint8 ? 1 : dtype == DType::kFloat32 ? 4 : 2;
}

Float16::operator float() const { return from_float16(bits); }

Bfloat16::operator float() const { return from_bfloat16(bits); }

std::array<std::uint32_t, 3> TensorSpec::shape() const {
  if (layout == Layout::kChw) return {channels, height, width};
  return {height, width, channels};
}

std::uint64_t TensorSpec::size_bytes() const {
  return checked_mul(checked_mul(checked_mul(height, width), channels),
                     precache::size_bytes(dtype));
}

std::string TensorSpec::text() const {
  const auto extents = shape();
  return fmt::format("{} {}x{}x{} {}", name(dtype), extents[0], extents[1], extents[2],
                     name(layout));
}

}  // namespace precache
