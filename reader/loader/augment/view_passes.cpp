// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/view_passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostViews = 64;

void check_views(const BatchTransform& transform) {
  if (!transform.views.empty() && !transform.augmentation.empty()) {
    throw InvalidArgument("`augmentation` cannot be combined with `views`",
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
    : stored_(stored), stored_columns_(std::move(columns)), columns_(stored_columns_) {
  check_views(transform);
  if (!transform.has_lists()) {
    passes_.push_back(std::make_shared<ViewPass>(stored, transform, nullptr));
  } else if (transform.views.empty()) {
    passes_.push_back(std::make_shared<ViewPass>(stored, transform, &transform.augmentation));
  }
  for (const Augmentation& list : transform.views) {
    passes_.push_back(std::make_shared<ViewPass>(stored, transform, &list));
  }
  set_mask();
}

/// Follows the first view.
void ViewPasses::set_mask() {
  if (stored_columns_ == nullptr) return;
  const auto first = std::ranges::find_if(*stored_columns_, &NamedColumn::is_mask);
  if (first == stored_columns_->end()) return;
  if (size() > 1) {
    throw InvalidArgument(
        fmt::format("`columns` has the mask '{}', but `views` makes {} images of each sample, and "
                    "the mask can follow only one",
                    first->name, size()),
        "Use `augmentation` instead of `views`, or leave out the mask.");
  }
  ViewPass mask = view(0).for_masks();
  mask_ = nullptr;
  columns_ = stored_columns_;
  if (mask.is_copy()) return;
  for (const NamedColumn& column : *stored_columns_) {
    if (!column.is_mask() || column.shape == std::vector{stored_.height, stored_.width}) continue;
    throw InvalidArgument(
        fmt::format("`columns` has '{}', a mask of {}x{}, but the images are {}x{}, and the "
                    "transform moves the pixels of both",
                    column.name, column.shape[0], column.shape[1], stored_.height, stored_.width),
        "Leave out the mask, or the operations that crop, flip, resize or turn.");
  }
  const TensorSpec& result = mask.result();
  std::vector<NamedColumn> columns = *stored_columns_;
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

ViewPasses ViewPasses::with_view(std::size_t view, std::shared_ptr<const ViewPass> pass) const {
  ViewPasses result = *this;
  result.passes_[view] = std::move(pass);
  result.set_mask();
  return result;
}

}  // namespace precache
