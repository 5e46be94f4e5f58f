// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/typed_rows.hpp"

namespace precache {

/// One of the tensors that a batch has of each sample; borrows the memory of the batch.
class BatchView {
 public:
  BatchView(const TensorSpec& spec, const std::byte* data, std::size_t count,
            std::size_t stride_bytes)
      : spec_(spec), data_(data), count_(count), stride_bytes_(stride_bytes) {}

  /// The number of rows: that of the batch.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// The type and shape of each row.
  [[nodiscard]] const TensorSpec& spec() const { return spec_; }
  /// Row i is at `data() + i * stride_bytes()`, aligned for its elements.
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t stride_bytes() const { return stride_bytes_; }
  /// As Batch::as().
  template <TensorElement T>
  [[nodiscard]] TypedRows<const T> as() const {
    return {spec_, data_, count_, stride_bytes_};
  }
  /// REQUIRES: i < size().
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const {
    return {data_ + i * stride_bytes_, spec_.size_bytes()};
  }

 private:
  TensorSpec spec_;
  const std::byte* data_;
  std::size_t count_;
  std::size_t stride_bytes_;
};

}  // namespace precache
