// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "precache/formats/named_column.hpp"

namespace precache {

/// A type that the values of a named column have in C++.
template <typename T>
concept ColumnElement = std::same_as<T, std::uint8_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, float>;

template <ColumnElement T>
inline constexpr ValueType kValueTypeOf = std::same_as<T, std::uint8_t>   ? ValueType::kUint8
                                          : std::same_as<T, std::int32_t> ? ValueType::kInt32
                                          : std::same_as<T, std::int64_t> ? ValueType::kInt64
                                                                          : ValueType::kFloat32;

namespace detail {

/// Throws InvalidArgument if the values do not have the type `asked`.
void check_values(const NamedColumn& column, ValueType asked);

}  // namespace detail

/// The values of one named column for the samples of a batch: `rows[i][k]` is value k of sample i.
///
/// It borrows the memory of a Batch, which must outlive it.
template <ColumnElement T>
class ColumnRows {
 public:
  /// Throws InvalidArgument if the column has values of another type.
  /// REQUIRES: `bytes` has the values of whole rows, aligned for T.
  ColumnRows(const NamedColumn& column, std::span<const std::byte> bytes)
      : data_(reinterpret_cast<const T*>(bytes.data())),
        row_values_(column.count()),
        count_(bytes.size() / column.size_bytes()) {
    detail::check_values(column, kValueTypeOf<T>);
  }

  [[nodiscard]] std::size_t size() const { return count_; }
  /// REQUIRES: i < size().
  [[nodiscard]] std::span<const T> operator[](std::size_t i) const {
    return {data_ + i * row_values_, row_values_};
  }
  /// All values, row after row.
  [[nodiscard]] std::span<const T> values() const { return {data_, count_ * row_values_}; }

 private:
  const T* data_;
  std::size_t row_values_;
  std::size_t count_;
};

}  // namespace precache
