// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/named_column.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "formats/bytes/checked_math.hpp"
#include "formats/shard/limits.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr std::size_t kLongestValueName = 1024;

// Names of other columns, of HDF5 datasets and of TFRecord features.
constexpr std::array<std::string_view, 9> kReserved{"image",  "label", "key",   "crc32c", "images",
                                                    "labels", "keys",  "align", "pad"};

}  // namespace

std::size_t size_bytes(ValueType type) {
  return type == ValueType::kUint8 ? 1 : type == ValueType::kInt64 ? 8 : 4;
}

std::uint64_t NamedColumn::count() const {
  std::uint64_t values = 1;
  for (const std::uint32_t extent : shape) values = checked_mul(values, extent);
  return values;
}

std::uint64_t NamedColumn::size_bytes() const {
  return checked_mul(count(), precache::size_bytes(type));
}

std::string NamedColumn::text() const {
  const std::string what = fmt::format("{} {}", name, precache::name(type));
  return shape.empty() ? what : fmt::format("{}[{}]", what, fmt::join(shape, ","));
}

void NamedColumn::validate() const {
  const bool has_valid_name =
      !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
               letter == '_';
      });
  if (!has_valid_name) {
    throw InvalidArgument(
        fmt::format("'{}' cannot be the name of a column", name),
        fmt::format("Use 1 to {} lower-case letters, digits and '_'.", kLongestName));
  }
  if (std::ranges::find(kReserved, name) != kReserved.end()) {
    throw InvalidArgument(
        fmt::format("a column cannot be named '{}', which has another meaning", name),
        fmt::format("Reserved names are {}.", fmt::join(kReserved, ", ")));
  }
  if (shape.size() > 2 || (shape.size() == 2 && type != ValueType::kUint8)) {
    throw InvalidArgument(
        fmt::format("column '{}' must have one value, a list of them, or a mask of uint8", name));
  }
  const std::uint32_t largest = shape.size() == 2 ? kLargestTensorSide : kMostValues;
  for (const std::uint32_t extent : shape) {
    if (extent != 0 && extent <= largest) continue;
    throw InvalidArgument(
        fmt::format("column '{}' must have from 1 to {} {}, got {}", name, largest,
                    shape.size() == 2 ? "rows and columns of pixels" : "values", extent));
  }
  if (value_names.empty()) return;
  if (shape.size() != 1 || type != ValueType::kUint8 || value_names.size() != shape[0]) {
    throw InvalidArgument(fmt::format("column '{}' has {} names for its values, but it is {}", name,
                                      value_names.size(), text()));
  }
  for (const std::string& value_name : value_names) {
    if (!value_name.empty() && value_name.size() <= kLongestValueName) continue;
    throw InvalidArgument(
        fmt::format("a name of a value of column '{}' has {} bytes", name, value_name.size()),
        fmt::format("Use 1 to {} bytes.", kLongestValueName));
  }
}

void validate(const std::vector<NamedColumn>& columns) {
  if (columns.size() > kMostNamedColumns) {
    throw InvalidArgument(
        fmt::format("there are {} named columns, more than {}", columns.size(), kMostNamedColumns));
  }
  std::set<std::string_view> names;
  for (const NamedColumn& column : columns) {
    column.validate();
    if (names.insert(column.name).second) continue;
    throw InvalidArgument(fmt::format("there are two columns named '{}'", column.name));
  }
}

std::uint64_t values_bytes(const std::vector<NamedColumn>& columns) {
  std::uint64_t bytes = 0;
  for (const NamedColumn& column : columns) bytes = checked_add(bytes, column.size_bytes());
  return bytes;
}

}  // namespace precache
