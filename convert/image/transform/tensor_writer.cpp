// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/tensor_writer.hpp"

#include "convert/image/decode/image_decoder.hpp"
#include "convert/image/transform/kernels.hpp"
#include "formats/bytes/half_float.hpp"

namespace precache {

TensorWriter::TensorWriter(const Recipe& recipe) : spec_(recipe.spec()) {
  const Normalization normalize = recipe.normalize.value_or(Normalization());
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t value = 0; value < 256; ++value) {
      const float x = normalize(static_cast<std::uint8_t>(value), channel);
      floats_[channel][value] = x;
      halves_[channel][value] = spec_.dtype == DType::kBfloat16 ? to_bfloat16(x) : to_float16(x);
    }
  }
}

void TensorWriter::fill(std::span<std::byte> tensor, std::uint8_t value) const {
  const std::vector<std::uint8_t> row(std::size_t{spec_.width} * kPixelBytes + kRowSlack, value);
  for (std::uint32_t y = 0; y < spec_.height; ++y) write(tensor, y, 0, row.data(), spec_.width);
}

void TensorWriter::write(std::span<std::byte> tensor, std::uint32_t y, std::uint32_t x,
                         const std::uint8_t* pixels, std::uint32_t count) const {
  switch (spec_.dtype) {
    case DType::kUint8:
      return write_bytes(reinterpret_cast<std::uint8_t*>(tensor.data()), y, x, pixels, count);
    case DType::kFloat16:
    case DType::kBfloat16:
      return write_converted(halves_, reinterpret_cast<std::uint16_t*>(tensor.data()), y, x, pixels,
                             count);
    case DType::kFloat32:
      return write_converted(floats_, reinterpret_cast<float*>(tensor.data()), y, x, pixels, count);
  }
}

template <typename T>
void TensorWriter::write_converted(const Tables<T>& tables, T* tensor, std::uint32_t y,
                                   std::uint32_t x, const std::uint8_t* pixels,
                                   std::uint32_t count) const {
  const std::size_t channels = spec_.channels;
  const std::size_t at = std::size_t{y} * spec_.width + x;
  const std::size_t plane = std::size_t{spec_.height} * spec_.width;
  const bool chw = spec_.layout == Layout::kChw;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    T* out = chw ? tensor + channel * plane + at : tensor + at * channels + channel;
    const std::size_t step = chw ? 1 : channels;
    const auto& table = tables[channel];
    const std::uint8_t* in = pixels + channel;
    for (std::uint32_t i = 0; i < count; ++i) out[i * step] = table[in[i * kPixelBytes]];
  }
}

void TensorWriter::write_bytes(std::uint8_t* tensor, std::uint32_t y, std::uint32_t x,
                               const std::uint8_t* pixels, std::uint32_t count) const {
  const std::size_t at = std::size_t{y} * spec_.width + x;
  const std::size_t plane = std::size_t{spec_.height} * spec_.width;
  if (spec_.channels == 1) {
    for (std::uint32_t i = 0; i < count; ++i) tensor[at + i] = pixels[i * kPixelBytes];
  } else if (spec_.layout == Layout::kChw) {
    split_planes(pixels, count, tensor + at, tensor + plane + at, tensor + 2 * plane + at);
  } else {
    pack_rgb(pixels, count, tensor + at * 3);
  }
}

}  // namespace precache
