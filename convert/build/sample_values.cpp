// SPDX-License-Identifier: Apache-2.0
#include "convert/build/sample_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "convert/image/transform/orientation.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

NamedColumn mask_column(const Recipe& recipe) {
  return {kMaskColumn, ValueType::kUint8, {recipe.height, recipe.width}, {}};
}

NamedColumn size_column() { return {kSizeColumn, ValueType::kInt32, {2}, {}}; }

}  // namespace

SampleValues::SampleValues(const Recipe& recipe, bool has_sizes, std::vector<NamedColumn> targets,
                           const MaskFiles* masks)
    : recipe_(recipe),
      targets_(std::move(targets)),
      targets_bytes_(values_bytes(targets_)),
      masks_(masks),
      columns_(targets_) {
  if (masks_ != nullptr) columns_.push_back(mask_column(recipe));
  if (has_sizes) columns_.push_back(size_column());
  validate(columns_);
}

std::string SampleValues::source_fingerprint(const Listing& samples,
                                             const std::string& of_listing) const {
  if (targets_.empty() && masks_ == nullptr) return of_listing;
  std::string text = of_listing;  // covers the values of targets
  for (const NamedColumn& column : targets_) {
    text += "\n" + column.text();
    for (const std::string& name : column.value_names) text += "\n" + name;
  }
  Listing all;  // its fingerprint covers a path and a number
  all.add(
      {.path = text,
       .label = masks_ == nullptr ? -1 : static_cast<std::int64_t>(masks_->fingerprint(samples))});
  return all.fingerprint();
}

ValueMaker::ValueMaker(const SampleValues& values, std::uint64_t max_pixels) : values_(values) {
  if (values.masks_ == nullptr) return;
  reader_ = values.masks_->files().reader();
  transform_.emplace(values.recipe_, max_pixels);
}

std::uint32_t ValueMaker::read(const ListedFile& sample, std::uint32_t image_crc) {
  if (!reader_) return image_crc;
  const std::string_view note =
      sample.targets.substr(std::min<std::size_t>(sample.targets.size(), values_.targets_bytes_));
  noted_ = note.size() == kMaskNoteBytes ? MaskFiles::noted(sample.path, note)
                                         : values_.masks_->of(sample.path);
  unread_ = reader_->read(noted_.listed(), mask_);
  return unread_ || image_crc == 0 ? image_crc : crc32c::extend(image_crc, mask_);
}

std::optional<Rejection> ValueMaker::write(const ListedFile& sample, const ImageHeader& image,
                                           std::span<std::byte> to) {
  const std::uint64_t note_bytes = transform_ ? kMaskNoteBytes : 0;
  if (sample.targets.size() != values_.targets_bytes_ + note_bytes) {
    throw CorruptData(sample.path, 0, "the plan does not have the targets of this sample");
  }
  const auto targets = sample.targets.substr(0, values_.targets_bytes_);
  std::ranges::copy(as_bytes(targets), to.begin());
  to = to.subspan(targets.size());
  if (transform_) {
    const auto mask = to.first(mask_column(values_.recipe_).size_bytes());
    std::optional<Rejection> rejection = unread_;
    if (!rejection) rejection = transform_->run(mask_, image, mask);
    if (rejection) {
      return Rejection{RejectionStage::kMask,
                       fmt::format("mask '{}': {}", noted_.path, rejection->reason)};
    }
    to = to.subspan(mask.size());
  }
  if (to.empty()) return std::nullopt;
  const bool transposed = values_.recipe_.apply_exif && is_transposed(image.orientation);
  const std::array<std::int32_t, 2> size{
      static_cast<std::int32_t>(transposed ? image.width : image.height),
      static_cast<std::int32_t>(transposed ? image.height : image.width)};
  std::memcpy(to.data(), size.data(), sizeof size);
  return std::nullopt;
}

}  // namespace precache
