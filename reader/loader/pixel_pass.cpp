// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/pixel_pass.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "formats/bytes/half_float.hpp"
#include "precache/formats/error.hpp"
#include "reader/loader/augment/view_passes.hpp"

namespace precache {
namespace {

constexpr std::size_t kPixelValues = 256;

PixelJob::Side side_of(const TensorSpec& spec) {
  if (spec.layout == Layout::kHwc) return {std::size_t{spec.width} * spec.channels, 1};
  return {spec.width, std::size_t{spec.height} * spec.width};
}

void check_normalization(const Normalization& normalize, const TensorSpec& stored, DType result) {
  if (stored.dtype != DType::kUint8) {
    throw InvalidArgument(fmt::format("`normalize` needs tensors that are stored as uint8, not {}",
                                      name(stored.dtype)),
                          "Store uint8, or normalize when building.");
  }
  if (result == DType::kUint8) {
    throw InvalidArgument("`dtype` must be a float type with `normalize`, got uint8");
  }
  if (stored.channels != 1 && stored.channels != 3) {
    throw InvalidArgument(
        fmt::format("`normalize` has 3 channels, but the tensors have {}", stored.channels));
  }
  for (std::size_t channel = 0; channel < stored.channels; ++channel) {
    const float mean = normalize.mean[channel];
    const float std = normalize.std[channel];
    if (!std::isfinite(mean) || !std::isfinite(std) || std == 0) {
      throw InvalidArgument(fmt::format(
          "`normalize` needs finite values and no standard deviation of 0, got mean {} and "
          "standard deviation {}",
          mean, std));
    }
  }
}

}  // namespace

TensorSpec BatchTransform::result(const TensorSpec& stored) const {
  if (has_lists()) return ViewPasses(stored, *this).view(0).result();
  TensorSpec spec = stored;
  if (crop) {
    if (crop->height == 0 || crop->width == 0 || crop->height > stored.height ||
        crop->width > stored.width) {
      throw InvalidArgument(fmt::format("`crop` must fit tensors of {}x{}, got {}x{}",
                                        stored.height, stored.width, crop->height, crop->width));
    }
    spec.height = crop->height;
    spec.width = crop->width;
  }
  spec.dtype =
      dtype.value_or(normalize && stored.dtype == DType::kUint8 ? DType::kFloat32 : stored.dtype);
  spec.layout = layout.value_or(stored.layout);
  if (spec.dtype == DType::kUint8 && stored.dtype != DType::kUint8) {
    throw InvalidArgument(fmt::format("`dtype` cannot be uint8 for tensors that are stored as {}",
                                      name(stored.dtype)));
  }
  if (normalize) check_normalization(*normalize, stored, spec.dtype);
  return spec;
}

PixelPass::PixelPass(const TensorSpec& stored, const BatchTransform& transform)
    : stored_(stored), result_(transform.result(stored)), transform_(transform) {
  TensorSpec same = stored;
  if (stored.channels == 1) same.layout = result_.layout;  // makes no difference
  is_copy_ = result_ == same && !transform.flip;
  if (stored.dtype != DType::kUint8) return;
  set_rules(transform.normalize.value_or(Normalization()));
  for (const PixelMath math : {PixelMath::kAffine, PixelMath::kReciprocal}) {
    if (math_ == PixelMath::kTable && is_exact(math)) math_ = math;
  }
}

void PixelPass::set_rules(const Normalization& normalize) {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    // With one channel, the numbers of the others are unused and may be zero.
    const std::size_t channel = stored_.channels == 1 ? 0 : i;
    ChannelRule& rule = rules_[i];
    rule.mean = normalize.mean[channel];
    rule.std = normalize.std[channel];
    rule.inverse_std = 1.0F / rule.std;
    rule.scale = static_cast<float>(1.0 / (255.0 * rule.std));
    rule.offset = static_cast<float>(-static_cast<double>(rule.mean) / rule.std);
    for (std::size_t pixel = 0; pixel < kPixelValues; ++pixel) {
      const float value = normalize(static_cast<std::uint8_t>(pixel), channel);
      rule.floats[pixel] = value;
      rule.halves[pixel] =
          result_.dtype == DType::kBfloat16 ? to_bfloat16(value) : to_float16(value);
    }
  }
}

bool PixelPass::is_exact(PixelMath math) const {
  // Compares all pixels in all channels.
  std::array<std::uint8_t, 3 * kPixelValues> pixels{};
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  std::array<std::byte, pixels.size() * sizeof(float)> by_table{};
  std::array<std::byte, pixels.size() * sizeof(float)> by_math{};
  PixelJob job{.in = std::as_bytes(std::span(pixels)).data(),
               .in_side = {kPixelValues, kPixelValues},
               .out = by_table.data(),
               .out_side = {kPixelValues, kPixelValues},
               .out_type = result_.dtype,
               .channels = 3,
               .height = 1,
               .width = kPixelValues,
               .rules = &rules_};
  run_pixels(job);
  job.out = by_math.data();
  job.math = math;
  run_pixels(job);
  return by_table == by_math;
}

std::vector<std::string> PixelPass::warnings() const {
  const auto& crop = transform_.crop;
  if (!crop || crop->place != CropPosition::kRandom || crop->height != stored_.height ||
      crop->width != stored_.width) {
    return {};
  }
  return {fmt::format(
      "A random crop of {}x{} from tensors of that size cannot move. Build the dataset larger than "
      "the crop.",
      crop->height, crop->width)};
}

CropRule PixelPass::crop_rule() const {
  return {stored_.height - result_.height, stored_.width - result_.width,
          transform_.crop && transform_.crop->place == CropPosition::kCenter, transform_.flip};
}

void PixelPass::run(std::span<const std::byte> tensor, const AugmentationDraw& choice,
                    std::byte* out, bool stream) const {
  if (is_copy_ && stream) {
    copy_streamed(tensor, out);
  } else if (is_copy_) {
    std::memcpy(out, tensor.data(), tensor.size());
  } else {
    const PixelJob::Side side = side_of(stored_);
    const std::size_t pixel = side.channel == 1 ? stored_.channels : 1;
    const std::size_t first = choice.y * side.row + choice.x * pixel;
    PixelJob source;
    source.in = tensor.data() + first * size_bytes(stored_.dtype);
    source.in_side = side;
    source.in_type = stored_.dtype;
    source.channels = stored_.channels;
    source.height = result_.height;
    source.width = result_.width;
    source.flip = choice.flip;
    finish(source, out, stream);
  }
}

void PixelPass::finish(PixelJob source, std::byte* out, bool stream) const {
  source.out = out;
  source.out_side = side_of(result_);
  source.out_type = result_.dtype;
  source.stream = stream;
  source.math = math_;
  source.rules = &rules_;
  run_pixels(source);
}

}  // namespace precache
