// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/tensor_spec.hpp"

#include <fmt/format.h>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/enum_names.hpp"

namespace precache {

std::string_view name(Layout layout) { return layout == Layout::kChw ? "chw" : "hwc"; }

Layout parse_layout(std::string_view name) { return parse_enum(kAllLayouts, name, "layout"); }

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
