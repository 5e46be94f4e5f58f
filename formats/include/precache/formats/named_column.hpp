// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace precache {

/// Element type of a named column. Values are little-endian in every format.
enum class ValueType { kUint8, kInt32, kInt64, kFloat32 };
inline constexpr std::array kAllValueTypes{ValueType::kUint8, ValueType::kInt32, ValueType::kInt64,
                                           ValueType::kFloat32};

/// "uint8", "int32", "int64", "float32".
[[nodiscard]] std::string_view name(ValueType type);
[[nodiscard]] std::size_t size_bytes(ValueType type);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] ValueType parse_value_type(std::string_view name);

/// The columns that precache makes itself: of segmentation masks, and of the height and width that
/// an image had before it was resized.
inline constexpr const char* kMaskColumn = "mask";
inline constexpr const char* kSizeColumn = "size";

/// A column next to image, label and key: float or integer targets, several labels as one byte for
/// each class, a segmentation mask. All records have as many values.
struct NamedColumn {
  std::string name;
  ValueType type = ValueType::kFloat32;
  /// Empty: one value; one extent: a list; two (of uint8 only): height and width of a mask.
  std::vector<std::uint32_t> shape;
  /// Of a list of uint8 that has a 1 for each class of the sample: the names of those classes.
  std::vector<std::string> value_names;

  bool operator==(const NamedColumn&) const = default;

  [[nodiscard]] bool is_mask() const { return shape.size() == 2; }
  /// The number of values in a record.  REQUIRES: validate() has accepted it.
  [[nodiscard]] std::uint64_t count() const;
  /// The bytes of a record's values.  REQUIRES: validate() has accepted it.
  [[nodiscard]] std::uint64_t size_bytes() const;
  /// As in "age float32" and "mask uint8[224,224]".
  [[nodiscard]] std::string text() const;
  /// Throws InvalidArgument if the name is not of 1 to 64 lower-case letters, digits and `_` or
  /// means something else in a shard, and for a shape that is too large.
  void validate() const;
};

/// Those of a split, which all of its shards share; null: there are none.
using NamedColumns = std::shared_ptr<const std::vector<NamedColumn>>;

/// The largest number of values in a record of a column that is not a mask.
inline constexpr std::uint32_t kMostValues = 4096;
/// The largest number of named columns of a split.
inline constexpr std::size_t kMostNamedColumns = 64;

/// Throws InvalidArgument if a column is not valid, two have one name, or there are too many.
void validate(const std::vector<NamedColumn>& columns);
/// The bytes of the values that a record has in all columns, one after another.
[[nodiscard]] std::uint64_t values_bytes(const std::vector<NamedColumn>& columns);

}  // namespace precache
