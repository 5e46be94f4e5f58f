// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "precache/formats/named_column.hpp"
#include "reader/loader/augment/view_pass.hpp"

namespace precache {

/// All views of a transform, and their places in the memory of a batch. Immutable.
class ViewPasses {
 public:
  static constexpr std::size_t kAlignment =
      64;  // of the first row of each view, for streamed stores

  /// `columns`: those that batches have next to images, as they are stored. Throws InvalidArgument
  /// and Unsupported, as BatchTransform::result(), and InvalidArgument if the transform moves
  /// pixels and a mask does not have the size of the images, or there are several views.
  ViewPasses(const TensorSpec& stored, const BatchTransform& transform,
             NamedColumns columns = nullptr);

  [[nodiscard]] std::size_t size() const { return passes_.size(); }
  /// REQUIRES: i < size().
  [[nodiscard]] const ViewPass& view(std::size_t i) const { return *passes_[i]; }
  [[nodiscard]] const std::shared_ptr<const ViewPass>& shared_view(std::size_t i) const {
    return passes_[i];
  }
  /// The columns of a batch: masks have the size of the images. Null: there are none.
  [[nodiscard]] const NamedColumns& columns() const { return columns_; }
  /// The pass for masks; null if they are copied.
  [[nodiscard]] const ViewPass* mask() const { return mask_.get(); }
  /// The size of one sample in all views.
  [[nodiscard]] std::size_t sample_bytes() const;
  /// The offset of a view in a batch of `rows` samples; of size(), the size of the batch.
  [[nodiscard]] std::size_t offset(std::size_t view, std::size_t rows) const;
  /// The same views, one of them with another pass.  REQUIRES: view < size().
  [[nodiscard]] ViewPasses with_view(std::size_t view, std::shared_ptr<const ViewPass> pass) const;

 private:
  void set_mask();

  std::vector<std::shared_ptr<const ViewPass>> passes_;
  TensorSpec stored_;
  NamedColumns stored_columns_;
  NamedColumns columns_;
  std::shared_ptr<const ViewPass> mask_;
};

}  // namespace precache
