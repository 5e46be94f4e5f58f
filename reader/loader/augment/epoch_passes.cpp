// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/epoch_passes.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"
#include "reader/loader/augment/operation_checks.hpp"

namespace precache {
namespace {

// Sizes may be wider than the largest one, or higher: the memory of a batch has no sides.
std::uint64_t pixels(const ImageSize& size) { return std::uint64_t{size.height} * size.width; }

ImageSize size_of(const ViewPass& pass) { return {pass.result().height, pass.result().width}; }

bool has_allowed_sides(const ImageSize& size) {
  return size.height != 0 && size.width != 0 && size.height <= augment::kLargestSide &&
         size.width <= augment::kLargestSide;
}

}  // namespace

EpochPasses::EpochPasses(const TensorSpec& stored, const BatchTransform& transform,
                         NamedColumns columns) {
  const auto first = std::make_shared<const ViewPasses>(stored, transform, std::move(columns));
  from_[0] = {first, std::vector<bool>(first->size(), false)};
  for (const EpochSize& each : transform.sizes) {
    if (!has_allowed_sides(each.size)) {
      throw InvalidArgument(fmt::format("`sizes` must have sides between 1 and {}, got {}x{}",
                                        augment::kLargestSide, each.size.height, each.size.width));
    }
    set(each.size, 0, each.epoch);
  }
  for (std::size_t view = 0; view < first->size(); ++view) {
    largest_.push_back(size_of(first->view(view)));
  }
  // Sizes for epoch 0 replace that of the transform, which then needs no memory.
  largest_[0] = size_of(from_[0].passes->view(0));
  for (const auto& [epoch, from] : from_) {
    const ImageSize size = size_of(from.passes->view(0));
    if (pixels(size) > pixels(largest_[0])) largest_[0] = size;
  }
  if (!transform.max_size) return;
  if (!has_allowed_sides(*transform.max_size) ||
      pixels(*transform.max_size) < pixels(largest_[0])) {
    throw InvalidArgument(
        fmt::format("`max_size` must have sides of at most {} and at least as many pixels as the "
                    "{}x{} that the transform makes, got {}x{}",
                    augment::kLargestSide, largest_[0].height, largest_[0].width,
                    transform.max_size->height, transform.max_size->width));
  }
  (void)first->view(0).with_size(largest_[0]);  // throws if the view has no size to set
  largest_[0] = *transform.max_size;
}

const std::shared_ptr<const ViewPasses>& EpochPasses::at(std::uint64_t epoch) const {
  return std::prev(from_.upper_bound(epoch))->second.passes;
}

bool EpochPasses::agree(const EpochPasses& other, std::uint64_t first, std::uint64_t last) const {
  for (std::uint64_t epoch = first;; ++epoch) {
    for (std::size_t view = 0; view < views(); ++view) {
      const TensorSpec& result = other.at(epoch)->view(view).result();
      if (at(epoch)->view(view).result() != result) return false;
    }
    if (epoch >= last) return true;  // it may be the last of all numbers
  }
}

std::size_t EpochPasses::largest_row_bytes(std::size_t view) const {
  TensorSpec spec = from_.begin()->second.passes->view(view).result();
  spec.height = largest_[view].height;
  spec.width = largest_[view].width;
  return spec.size_bytes();
}

std::size_t EpochPasses::largest_batch_bytes(std::size_t rows) const {
  std::size_t bytes = 0;
  for (std::size_t view = 0; view < views(); ++view) {
    bytes = checked_add(round_up(bytes, ViewPasses::kAlignment),
                        checked_mul(rows, largest_row_bytes(view)));
  }
  return bytes;
}

EpochPasses EpochPasses::with_size(ImageSize size, std::size_t view, std::uint64_t epoch) const {
  if (!has_allowed_sides(size) || pixels(size) > pixels(largest_[view])) {
    throw InvalidArgument(
        fmt::format("set_size() takes sides from 1 to {} and at most as many pixels as {}x{} here, "
                    "got {}x{}",
                    augment::kLargestSide, largest_[view].height, largest_[view].width, size.height,
                    size.width),
        view == 0 ? "Set `max_size` to the largest size that you will need."
                  : "Views other than the first cannot become larger than they were made.");
  }
  EpochPasses changed = *this;
  changed.set(size, view, epoch);
  return changed;
}

void EpochPasses::set(ImageSize size, std::size_t view, std::uint64_t epoch) {
  const std::shared_ptr<const ViewPasses> before = at(epoch);
  auto pass = std::make_shared<const ViewPass>(before->view(view).with_size(size));
  if (size_of(before->view(view)) == size) pass = before->shared_view(view);  // one for all epochs
  const auto begin =
      from_.try_emplace(epoch, From{before, std::vector<bool>(before->size(), false)}).first;
  begin->second.is_set[view] = true;
  for (auto each = begin; each != from_.end(); ++each) {
    From& from = each->second;
    if (each != begin && from.is_set[view]) break;
    from.passes = std::make_shared<const ViewPasses>(from.passes->with_view(view, pass));
  }
}

}  // namespace precache
