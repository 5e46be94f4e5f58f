// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/view_passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"
#include "reader/loader/augment/operation_checks.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostViews = 64;
constexpr std::size_t kAlignment = 64;  // of the first row of each view, for streamed stores

TensorSpec with(TensorSpec spec, ImageSize size) {
  spec.height = size.height;
  spec.width = size.width;
  return spec;
}

void check_views(const BatchTransform& transform) {
  if (!transform.views.empty() && !transform.augmentation.empty()) {
    throw InvalidArgument("`augmentation` and `views` contradict each other",
                          "Make the list of `augmentation` one of the views.");
  }
  if (transform.views.size() > kMostViews) {
    throw InvalidArgument(fmt::format("`views` must have at most {} lists, got {}", kMostViews,
                                      transform.views.size()));
  }
}

}  // namespace

ViewPasses::ViewPasses(const TensorSpec& stored, const BatchTransform& transform,
                       NamedColumns columns)
    : columns_(std::move(columns)) {
  check_views(transform);
  if (!transform.has_lists()) {
    passes_.push_back(std::make_shared<ViewPass>(stored, transform, nullptr));
  } else if (transform.views.empty()) {
    passes_.push_back(std::make_shared<ViewPass>(stored, transform, &transform.augmentation));
  }
  for (const Augmentation& list : transform.views) {
    passes_.push_back(std::make_shared<ViewPass>(stored, transform, &list));
  }
  for (const auto& pass : passes_) {
    const TensorSpec& result = pass->result();
    largest_sizes_.push_back({result.height, result.width});
    largest_rows_.push_back(result.size_bytes());
  }
  if (columns_ != nullptr && std::ranges::any_of(*columns_, &NamedColumn::is_mask)) {
    add_mask(stored);
  }
  if (!transform.max_size) return;
  const auto& [height, width] = *transform.max_size;
  const TensorSpec& first = view(0).result();
  if (height < first.height || width < first.width || height > augment::kLargestSide ||
      width > augment::kLargestSide) {
    throw InvalidArgument(fmt::format(
        "`max_size` must be between the size of the transform, {}x{}, and {}, got {}x{}",
        first.height, first.width, augment::kLargestSide, height, width));
  }
  (void)view(0).with_size(*transform.max_size);  // throws if the view has no size to set
  largest_sizes_[0] = *transform.max_size;
  largest_rows_[0] = with(first, *transform.max_size).size_bytes();
}

/// REQUIRES: a column is a mask.
void ViewPasses::add_mask(const TensorSpec& stored) {
  const NamedColumn& first = *std::ranges::find_if(*columns_, &NamedColumn::is_mask);
  if (size() > 1) {
    throw InvalidArgument(
        fmt::format("`columns` has the mask '{}', but `views` makes {} images of each sample, and "
                    "the mask can follow only one",
                    first.name, size()),
        "Use `augmentation` instead of `views`, or leave out the mask.");
  }
  ViewPass mask = view(0).for_masks();
  if (mask.is_copy()) return;
  for (const NamedColumn& column : *columns_) {
    if (!column.is_mask() || column.shape == std::vector{stored.height, stored.width}) continue;
    throw InvalidArgument(
        fmt::format("`columns` has '{}', a mask of {}x{}, but the images are {}x{}, and the "
                    "transform moves the pixels of both",
                    column.name, column.shape[0], column.shape[1], stored.height, stored.width),
        "Leave out the mask, or the operations that crop, flip, resize or turn.");
  }
  set_mask(std::move(mask));
}

void ViewPasses::set_mask(ViewPass mask) {
  const TensorSpec& result = mask.result();
  std::vector<NamedColumn> columns = *columns_;
  for (NamedColumn& column : columns) {
    if (column.is_mask()) column.shape = {result.height, result.width};
  }
  columns_ = std::make_shared<const std::vector<NamedColumn>>(std::move(columns));
  mask_ = std::make_shared<const ViewPass>(std::move(mask));
}

std::size_t ViewPasses::sample_bytes() const {
  std::size_t bytes = 0;
  for (const auto& pass : passes_) bytes += pass->result().size_bytes();
  return bytes;
}

std::size_t ViewPasses::offset(std::size_t view, std::size_t rows) const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < view; ++i) {
    bytes = round_up(bytes, kAlignment) + rows * passes_[i]->result().size_bytes();
  }
  return view < size() ? round_up(bytes, kAlignment) : bytes;
}

std::size_t ViewPasses::largest_batch_bytes(std::size_t rows) const {
  std::size_t bytes = 0;
  for (const std::size_t row : largest_rows_) {
    bytes = checked_add(round_up(bytes, kAlignment), checked_mul(rows, row));
  }
  return bytes;
}

ViewPasses ViewPasses::with_size(ImageSize size, std::size_t view) const {
  const ImageSize& largest = largest_sizes_[view];
  if (size.height == 0 || size.width == 0 || size.height > largest.height ||
      size.width > largest.width) {
    throw InvalidArgument(
        fmt::format("set_size() takes sizes from 1x1 to {}x{} here, got {}x{}", largest.height,
                    largest.width, size.height, size.width),
        view == 0 ? "Set `max_size` to the largest size that you will need."
                  : "Views other than the first cannot become larger than they were made.");
  }
  ViewPasses result = *this;
  result.passes_[view] = std::make_shared<ViewPass>(passes_[view]->with_size(size));
  if (mask_ != nullptr) result.set_mask(result.view(0).for_masks());
  return result;
}

}  // namespace precache
