// SPDX-License-Identifier: Apache-2.0

// The names of all enumerations, as options, manifests and messages have them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "formats/bytes/text.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/format.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/formats/recipe.hpp"

namespace precache {
namespace {

template <typename Enum, std::size_t kCount>
std::string_view name_of(Enum value, const std::string_view (&names)[kCount]) {
  return names[static_cast<std::size_t>(value)];
}

/// Throws InvalidArgument for an unknown text; `what` says what kind of thing it names.
template <typename Enum, std::size_t kCount>
Enum parse(const std::array<Enum, kCount>& values, std::string_view text, std::string_view what) {
  std::array<std::string_view, kCount> names{};
  for (std::size_t i = 0; i < kCount; ++i) {
    names[i] = name(values[i]);
    if (names[i] == text) return values[i];
  }
  throw InvalidArgument(
      fmt::format("the {} must be one of {}, got '{}'", what, fmt::join(names, ", "), text),
      did_you_mean(text, {names.begin(), names.end()}));
}

}  // namespace

std::string_view name(Format format) { return name_of(format, {"tar", "tfrecord", "hdf5"}); }
Format parse_format(std::string_view name) { return parse(kAllFormats, name, "format"); }

std::string_view name(DType dtype) {
  return name_of(dtype, {"uint8", "float16", "bfloat16", "float32"});
}
DType parse_dtype(std::string_view name) { return parse(kAllDTypes, name, "dtype"); }

std::string_view name(ValueType type) {
  return name_of(type, {"uint8", "int32", "int64", "float32"});
}
ValueType parse_value_type(std::string_view name) { return parse(kAllValueTypes, name, "dtype"); }

std::string_view name(Layout layout) { return name_of(layout, {"chw", "hwc"}); }
Layout parse_layout(std::string_view name) { return parse(kAllLayouts, name, "layout"); }

std::string_view name(Fit fit) { return name_of(fit, {"crop", "stretch", "pad"}); }
Fit parse_fit(std::string_view name) { return parse(kAllFits, name, "fit"); }

std::string_view name(Filter filter) {
  return name_of(filter, {"nearest", "box", "bilinear", "bicubic", "lanczos"});
}
Filter parse_filter(std::string_view name) { return parse(kAllFilters, name, "filter"); }

std::string_view name(Color color) { return name_of(color, {"rgb", "gray"}); }
Color parse_color(std::string_view name) { return parse(kAllColors, name, "color"); }

}  // namespace precache
