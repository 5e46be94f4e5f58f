// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "precache/formats/dtype.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {
namespace detail {

/// True if rows at `data`, `data + stride_bytes`, ... are aligned for elements of a type.
[[nodiscard]] bool is_aligned(DType dtype, const std::byte* data, std::size_t stride_bytes);
/// Throws InvalidArgument if the elements do not have the type `asked`, Unsupported if rows are not
/// aligned for it.
void check_elements(const TensorSpec& spec, DType asked, const std::byte* data,
                    std::size_t stride_bytes);

}  // namespace detail

/// A view of tensors as elements of type T, which may be const: `rows[i][k]` is element k of tensor
/// i.
///
/// It borrows the memory of a Batch or of Rows, which must outlive it.
template <typename T>
class TypedRows {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;

 public:
  /// Throws the exceptions of check_elements().
  TypedRows(const TensorSpec& spec, Byte* data, std::size_t count, std::size_t stride_bytes)
      : data_(reinterpret_cast<T*>(data)),
        count_(count),
        stride_(stride_bytes / sizeof(T)),
        row_elements_(spec.size_bytes() / sizeof(T)) {
    detail::check_elements(spec, kDTypeOf<std::remove_const_t<T>>, data, stride_bytes);
  }

  [[nodiscard]] std::size_t size() const { return count_; }
  /// REQUIRES: i < size().
  [[nodiscard]] std::span<T> operator[](std::size_t i) const {
    return {data_ + i * stride_, row_elements_};
  }
  [[nodiscard]] T* data() const { return data_; }
  /// The number of elements from the beginning of one row to the next.
  [[nodiscard]] std::size_t stride() const { return stride_; }

 private:
  T* data_;
  std::size_t count_;
  std::size_t stride_;
  std::size_t row_elements_;
};

}  // namespace precache
