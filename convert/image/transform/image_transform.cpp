// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/image_transform.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/shard/file_kind.hpp"

namespace precache {
namespace {

// One axis usually has some thousand weights; the images of most folders need far fewer than this.
constexpr std::size_t kMostCachedWeights = std::size_t{1} << 20;

/// Pillow's convert("L"), into the first channel. Grey pixels keep their value.
class GraySink : public RowSink {
 public:
  GraySink(RowSink& next, std::uint32_t width)
      : next_(next), row_(std::size_t{width} * kPixelBytes + kRowSlack) {}
  void take_row(const std::uint8_t* pixels) override {
    for (std::size_t i = 0; i + kRowSlack < row_.size(); i += kPixelBytes) {
      const unsigned luma = pixels[i] * 19595U + pixels[i + 1] * 38470U + pixels[i + 2] * 7471U;
      row_[i] = static_cast<std::uint8_t>((luma + 0x8000U) >> 16);
    }
    next_.take_row(row_.data());
  }

 private:
  RowSink& next_;
  std::vector<std::uint8_t> row_;
};

}  // namespace

ImageTransform::ImageTransform(const Recipe& recipe, std::uint64_t max_pixels)
    : recipe_(recipe), max_pixels_(max_pixels), writer_(recipe) {}

const ImageTransform::Axis& ImageTransform::axis(const AxisGeometry& geometry, bool horizontal) {
  auto& [axes, cached] = horizontal ? horizontal_axes_ : vertical_axes_;
  const std::tuple key{geometry.source, geometry.resized, geometry.first, geometry.count};
  if (const auto found = axes.find(key); found != axes.end()) return found->second;
  Taps taps = make_taps(geometry, recipe_.filter);
  cached += taps.outputs.size() + taps.weights.size();
  if (cached > kMostCachedWeights) {
    axes.clear();
    cached = taps.outputs.size() + taps.weights.size();
  }
  Axis& axis = axes[key];
  axis.taps = std::move(taps);
  if (horizontal) axis.pass.emplace(axis.taps);
  return axis;
}

std::optional<Rejection> ImageTransform::run(std::span<const std::byte> file,
                                             std::span<std::byte> tensor) {
  const std::string_view kind = image_file_kind(file);
  if (!is_decoded(kind)) {
    return Rejection{RejectionStage::kDecode,
                     fmt::format("neither JPEG nor PNG: it is {}", describe_file(file))};
  }
  return run(kind == "JPEG" ? static_cast<ImageDecoder&>(jpeg_) : png_, file, tensor);
}

std::optional<Rejection> ImageTransform::run(std::span<const std::byte> array,
                                             const ArrayImage& image, std::span<std::byte> tensor) {
  array_.expect(image);
  return run(array_, array, tensor);
}

std::optional<Rejection> ImageTransform::run(ImageDecoder& decoder, std::span<const std::byte> file,
                                             std::span<std::byte> tensor) {
  ImageHeader header;
  if (auto rejection = decoder.open(file, header)) return rejection;
  if (std::uint64_t{header.width} * header.height > max_pixels_) {
    return Rejection{RejectionStage::kLimit, fmt::format("{}x{} pixels are more than max_pixels {}",
                                                         header.width, header.height, max_pixels_)};
  }
  if (std::max(header.width, header.height) > kLongestSide) {
    return Rejection{RejectionStage::kLimit,
                     fmt::format("{}x{} pixels: a side is longer than {}", header.width,
                                 header.height, kLongestSide)};
  }
  if (header.is_implausible) {
    return Rejection{RejectionStage::kDecode,
                     fmt::format("{} bytes are too few for {}x{} pixels", file.size(), header.width,
                                 header.height)};
  }
  const int orientation = recipe_.apply_exif ? header.orientation : 1;
  const bool transposed = is_transposed(orientation);
  const Geometry geometry = make_geometry(recipe_, transposed ? header.height : header.width,
                                          transposed ? header.width : header.height);
  if (geometry.horizontal.count != recipe_.width || geometry.vertical.count != recipe_.height) {
    writer_.fill(tensor, recipe_.pad_value);
  }
  // An extreme aspect ratio can leave no pixel of a padded image. It is still decoded, so that a
  // broken file is rejected.
  const bool empty = geometry.horizontal.count == 0 || geometry.vertical.count == 0;
  const Geometry used = empty ? Geometry{{1, 1, 0, 1, 0}, {1, 1, 0, 1, 0}} : geometry;
  const Axis& horizontal = axis(used.horizontal, true);
  const Axis& vertical = axis(used.vertical, false);
  const Region oriented{horizontal.taps.begin, vertical.taps.begin,
                        horizontal.taps.end - horizontal.taps.begin,
                        vertical.taps.end - vertical.taps.begin};
  resampler_.start(*horizontal.pass, vertical.taps, used, oriented.width, writer_, tensor);
  const Region region = stored_region(oriented, orientation, header.width, header.height);

  const bool oriented_rows = orientation != 1;
  if (oriented_rows) orienting_.start(region.width, region.height);
  RowSink& sink = oriented_rows ? static_cast<RowSink&>(orienting_) : resampler_;
  std::optional<Rejection> rejection;
  if (recipe_.color == Color::kGray) {
    GraySink gray(sink, region.width);
    rejection = decoder.decode(region, gray);
  } else {
    rejection = decoder.decode(region, sink);
  }
  if (rejection) return rejection;
  header_ = header;
  warned_ = decoder.warned();
  if (oriented_rows) orienting_.hand_over(orientation, resampler_);
  if (empty) writer_.fill(tensor, recipe_.pad_value);
  return std::nullopt;
}

}  // namespace precache
