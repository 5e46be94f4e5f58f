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
  /// `columns`: those that batches have next to images, as they are stored. Throws InvalidArgument
  /// and Unsupported, as BatchTransform::result(), and InvalidArgument if the transform moves
  /// pixels and a mask does not have the size of the images, or there are several views.
  ViewPasses(const TensorSpec& stored, const BatchTransform& transform,
             NamedColumns columns = nullptr);

  [[nodiscard]] std::size_t size() const { return passes_.size(); }
  /// REQUIRES: i < size().
  [[nodiscard]] const ViewPass& view(std::size_t i) const { return *passes_[i]; }
  /// The columns of a batch: masks have the size of the images. Null: there are none.
  [[nodiscard]] const NamedColumns& columns() const { return columns_; }
  /// The pass for masks; null if they are copied.
  [[nodiscard]] const ViewPass* mask() const { return mask_.get(); }
  /// The size of one sample in all views.
  [[nodiscard]] std::size_t sample_bytes() const;
  /// The offset of a view in a batch of `rows` samples; of size(), the size of the batch.
  [[nodiscard]] std::size_t offset(std::size_t view, std::size_t rows) const;
  /// The memory that any batch of up to `rows` samples needs, whatever with_size() is asked for.
  /// Throws
  /// InvalidArgument if it is too large for this machine.
  [[nodiscard]] std::size_t largest_batch_bytes(std::size_t rows) const;
  /// The same views, one of them with another size. Throws InvalidArgument.
  /// REQUIRES: view < size().
  [[nodiscard]] ViewPasses with_size(ImageSize size, std::size_t view) const;

 private:
  void add_mask(const TensorSpec& stored);
  void set_mask(ViewPass mask);

  std::vector<std::shared_ptr<const ViewPass>> passes_;
  std::vector<std::size_t> largest_rows_;  // by view, bytes of a sample
  std::vector<ImageSize> largest_sizes_;
  NamedColumns columns_;
  std::shared_ptr<const ViewPass> mask_;
};

}  // namespace precache
