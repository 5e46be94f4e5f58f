// SPDX-License-Identifier: Apache-2.0

#include "convert/image/transform/image_transform.hpp"
#include "convert/pictures/painting.hpp"
#include "formats/shard/file_kind.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kMostPixels = 100'000'000;

class CountingSink : public RowSink {
 public:
  CountingSink(EncodedPainter::ByteCounts& counts, std::uint32_t width)
      : counts_(counts), width_(width) {}
  void take_row(const std::uint8_t* pixels) override {
    for (std::uint32_t x = 0; x < width_; ++x, pixels += kPixelBytes) {
      for (std::size_t color = 0; color < kColors; ++color) ++counts_[color][pixels[color]];
    }
  }

 private:
  EncodedPainter::ByteCounts& counts_;
  std::uint32_t width_;
};

}  // namespace

std::optional<Rejection> EncodedPainter::read_header(std::span<const std::byte> file,
                                                     ImageHeader& header) {
  const std::string_view kind = image_file_kind(file);
  if (!is_decoded(kind)) return Rejection{RejectionStage::kDecode, describe_file(file)};
  decoder_ = kind == "JPEG" ? static_cast<ImageDecoder*>(&jpeg_) : &png_;
  if (auto rejection = decoder_->open(file, header)) return rejection;
  if (header.is_implausible || std::uint64_t{header.width} * header.height > kMostPixels) {
    return Rejection{RejectionStage::kLimit, "too many pixels to draw"};
  }
  return std::nullopt;
}

std::optional<Rejection> EncodedPainter::count(std::span<const std::byte> file,
                                               ByteCounts& counts) {
  ImageHeader header;
  if (auto rejection = read_header(file, header)) return rejection;
  CountingSink sink(counts, header.width);
  return decoder_->decode({0, 0, header.width, header.height}, sink);
}

std::optional<Rejection> EncodedPainter::paint(std::span<const std::byte> file, Picture& picture) {
  ImageHeader header;
  if (auto rejection = read_header(file, header)) return rejection;
  std::uint32_t width = header.width;
  std::uint32_t height = header.height;
  if (header.orientation >= 5) std::swap(width, height);  // stored on its side
  const auto [tile_width, tile_height] = tile_size(width, height);
  const bool grows = tile_width >= width;
  Recipe recipe;
  recipe.width = tile_width;
  recipe.height = tile_height;
  recipe.fit = Fit::kStretch;
  recipe.filter = grows ? Filter::kNearest : Filter::kBilinear;  // shows the pixels of small ones
  recipe.layout = Layout::kHwc;
  picture = {recipe.width, recipe.height, {}};
  picture.rgb.resize(std::size_t{picture.width} * picture.height * kColors);
  ImageTransform transform(recipe, kMostPixels);
  auto rejection = transform.run(file, std::as_writable_bytes(std::span(picture.rgb)));
  if (rejection) picture = {};
  return rejection;
}

}  // namespace precache
