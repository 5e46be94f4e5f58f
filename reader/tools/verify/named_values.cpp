// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/verify/named_values.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "formats/shard/column_values.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

template <typename T, typename Check>
bool all_values(std::span<const std::byte> values, const Check& check) {
  for (std::size_t at = 0; at < values.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, values.data() + at, sizeof value);
    if (!check(value)) return false;
  }
  return true;
}

/// Why the values of a record cannot be what their column says; empty: they can.
const char* fault_of(const NamedColumn& column, std::span<const std::byte> values) {
  if (column.name == kSizeColumn) {
    const bool is_positive = all_values<std::int32_t>(values, [](auto side) { return side > 0; });
    return is_positive ? "" : "an original size that is not positive";
  }
  if (column.type == ValueType::kFloat32) {
    const bool is_finite = all_values<float>(values, [](float x) { return std::isfinite(x); });
    return is_finite ? "" : "a value that is not finite";
  }
  if (column.value_names.empty()) return "";
  const bool is_flag = all_values<std::uint8_t>(values, [](auto byte) { return byte <= 1; });
  return is_flag ? "" : "a value other than 0 and 1";
}

void check_shape(const NamedColumn& column, const TensorSpec& spec,
                 const std::filesystem::path& path) {
  const bool is_size = column.type == ValueType::kInt32 && column.count() == 2;
  const bool is_mask =
      column.is_mask() && column.shape[0] == spec.height && column.shape[1] == spec.width;
  if ((column.name != kSizeColumn || is_size) && (column.name != kMaskColumn || is_mask)) return;
  throw CorruptData(
      path, 0, fmt::format("its column is {}, its tensors are {}", column.text(), spec.text()));
}

}  // namespace

void check_named_values(const ShardIndex& index, const std::filesystem::path& path,
                        std::span<const std::byte> file) {
  if (!index.named || index.samples == 0) return;
  const ColumnValues values(index, path);
  for (std::size_t c = 0; c < index.named->size(); ++c) {
    const NamedColumn& column = (*index.named)[c];
    check_shape(column, *index.spec, path);
    for (std::uint64_t i = 0; i < index.samples && !column.is_mask(); ++i) {
      const char* const fault = fault_of(column, values.named(file, c, i));
      if (*fault == '\0') continue;
      const Column& place = index.columns->named[c];
      throw CorruptData(path, place.base + i * place.stride,
                        fmt::format("record {} has {} in column '{}'", i, fault, column.name));
    }
  }
}

}  // namespace precache
