// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/tensor_writer.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "convert/image/decode/image_decoder.hpp"
#include "formats/bytes/half_float.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

float value_of_half(std::uint32_t bits) {
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const auto mantissa = static_cast<float>(bits & 1023U);
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

float value_of_bfloat(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

/// Visits all values of a 16-bit type and checks the numbers between two neighbours: below the
/// middle they round down, above it up, in the middle to the even one. `infinity` has the bits of
/// infinity.
template <typename Convert, typename Value>
void check_rounding(const Convert& convert, const Value& value, std::uint32_t infinity) {
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const float low = value(bits);
    // After the largest number, the next would be a power of two with one more exponent.
    const double high =
        bits + 1 == infinity ? 2.0 * low - value(bits - 1) : static_cast<double>(value(bits + 1));
    const double middle_exact = (static_cast<double>(low) + high) / 2;
    const auto middle = static_cast<float>(middle_exact);
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    const bool right = convert(low) == bits && convert(-low) == (bits | 0x8000U) &&
                       (static_cast<double>(middle) != middle_exact || convert(middle) == even) &&
                       convert(std::nextafter(middle, 0.0F)) == bits &&
                       (!std::isfinite(std::nextafter(middle, INFINITY)) ||
                        convert(std::nextafter(middle, INFINITY)) == bits + 1);
    if (right) continue;
    CAPTURE(bits, low, middle);
    FAIL_CHECK("rounds wrongly");
  }
}

TEST_CASE("float16 rounds to nearest even over its whole range", "[convert][tensor]") {
  check_rounding([](float x) { return std::uint32_t{to_float16(x)}; }, value_of_half, 0x7c00);
  CHECK(to_float16(0.0F) == 0);
  CHECK(to_float16(-0.0F) == 0x8000);
  CHECK(to_float16(65504.0F) == 0x7bff);
  CHECK(to_float16(65519.996F) == 0x7bff);
  CHECK(to_float16(65520.0F) == 0x7c00);
  CHECK(to_float16(-1e30F) == 0xfc00);
  CHECK(to_float16(INFINITY) == 0x7c00);
  CHECK(to_float16(-INFINITY) == 0xfc00);
  CHECK(to_float16(0x1p-25F) == 0);
  CHECK(to_float16(std::nextafter(0x1p-25F, 1.0F)) == 1);
  CHECK(to_float16(std::numeric_limits<float>::denorm_min()) == 0);
  for (const std::uint32_t bits : {0x7fc00000U, 0x7f800001U, 0xffffffffU}) {
    CHECK((to_float16(std::bit_cast<float>(bits)) & 0x7c00U) == 0x7c00U);
    CHECK((to_float16(std::bit_cast<float>(bits)) & 0x03ffU) != 0);
  }
}

TEST_CASE("bfloat16 rounds to nearest even over its whole range", "[convert][tensor]") {
  check_rounding([](float x) { return std::uint32_t{to_bfloat16(x)}; }, value_of_bfloat, 0x7f80);
  CHECK(to_bfloat16(1.0F) == 0x3f80);
  CHECK(to_bfloat16(-0.0F) == 0x8000);
  CHECK(to_bfloat16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(to_bfloat16(std::bit_cast<float>(0x7f7f7fffU)) == 0x7f7f);
  CHECK(to_bfloat16(std::bit_cast<float>(0x7f7f8000U)) == 0x7f80);
  CHECK(to_bfloat16(INFINITY) == 0x7f80);
  for (const std::uint32_t bits : {0x7fc00000U, 0x7f800001U, 0xffffffffU, 0x7fffffffU}) {
    CHECK((to_bfloat16(std::bit_cast<float>(bits)) & 0x7f80U) == 0x7f80U);
    CHECK((to_bfloat16(std::bit_cast<float>(bits)) & 0x007fU) != 0);
  }
}

/// The element of a tensor at a pixel and channel, as bytes.
std::uint64_t element(const TensorSpec& spec, std::span<const std::byte> tensor, std::size_t y,
                      std::size_t x, std::size_t channel) {
  const std::size_t index = spec.layout == Layout::kChw
                                ? (channel * spec.height + y) * spec.width + x
                                : (y * spec.width + x) * spec.channels + channel;
  const std::size_t size = size_bytes(spec.dtype);
  return test::little_endian(tensor.subspan(index * size, size));
}

std::uint64_t expected_element(const Recipe& recipe, std::uint8_t pixel, std::size_t channel) {
  volatile float x = static_cast<float>(pixel) / 255.0F;  // volatile: each step rounds separately
  if (recipe.normalize) {
    x = x - recipe.normalize->mean[channel];
    x = x / recipe.normalize->std[channel];
  }
  switch (recipe.dtype) {
    case DType::kUint8:
      return pixel;
    case DType::kFloat16:
      return to_float16(x);
    case DType::kBfloat16:
      return to_bfloat16(x);
    case DType::kFloat32:
      break;
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(x));
}

std::vector<Recipe> all_recipes(std::uint32_t height, std::uint32_t width) {
  std::vector<Recipe> recipes;
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      for (const Color color : {Color::kRgb, Color::kGray}) {
        Recipe recipe;
        recipe.height = height;
        recipe.width = width;
        recipe.dtype = dtype;
        recipe.layout = layout;
        recipe.color = color;
        recipes.push_back(recipe);
        if (dtype == DType::kUint8) continue;
        recipe.normalize = Normalization{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
        recipes.push_back(recipe);
      }
    }
  }
  return recipes;
}

TEST_CASE("rows of pixels become tensors of every type and layout", "[convert][tensor]") {
  test::Random random(1);
  for (const std::uint32_t width : {1U, 7U, 33U, 300U}) {
    for (const Recipe& recipe : all_recipes(3, width)) {
      const TensorSpec spec = recipe.spec();
      const TensorWriter writer(recipe);
      test::Bytes tensor(
          spec.size_bytes());  // exact size, so that ASan detects an overrun of one byte
      std::vector<std::vector<std::uint8_t>> rows;
      for (std::uint32_t y = 0; y < 3; ++y) {
        rows.push_back(test::random_octets(random, width * kPixelBytes + kRowSlack));
        for (std::size_t i = 0; i < std::min(width, 64U); ++i) {  // include all values
          rows[y][i * kPixelBytes] = static_cast<std::uint8_t>(i * 4 + y);
        }
        writer.write(tensor, y, 0, rows[y].data(), width);
      }
      bool right = true;
      for (std::uint32_t y = 0; y < 3; ++y) {
        for (std::uint32_t x = 0; x < width; ++x) {
          for (std::uint32_t c = 0; c < spec.channels; ++c) {
            right = right && element(spec, tensor, y, x, c) ==
                                 expected_element(recipe, rows[y][x * kPixelBytes + c], c);
          }
        }
      }
      CAPTURE(width, recipe.to_json());
      REQUIRE(right);
    }
  }
}

TEST_CASE("pixels are written only to their place", "[convert][tensor]") {
  for (const Recipe& recipe : all_recipes(4, 50)) {
    const TensorSpec spec = recipe.spec();
    const TensorWriter writer(recipe);
    test::Bytes tensor(spec.size_bytes(), std::byte{0x5a});
    const test::Bytes before = tensor;
    const std::vector<std::uint8_t> row(40 * kPixelBytes + kRowSlack, 200);
    writer.write(tensor, 2, 7, row.data(), 37);
    writer.write(tensor, 1, 0, row.data(), 0);
    bool right = true;
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t x = 0; x < 50; ++x) {
        for (std::size_t c = 0; c < spec.channels; ++c) {
          const bool written = y == 2 && x >= 7 && x < 44;
          const std::uint64_t wanted =
              written ? expected_element(recipe, 200, c) : element(spec, before, y, x, c);
          right = right && element(spec, tensor, y, x, c) == wanted;
        }
      }
    }
    CAPTURE(recipe.to_json());
    REQUIRE(right);
  }
}

TEST_CASE("fill sets every element as a pixel of that value would", "[convert][tensor]") {
  for (const Recipe& recipe : all_recipes(5, 9)) {
    const TensorSpec spec = recipe.spec();
    test::Bytes tensor(spec.size_bytes(), std::byte{0x5a});
    TensorWriter(recipe).fill(tensor, 114);
    bool right = true;
    for (std::size_t i = 0; i < 45; ++i) {
      for (std::size_t c = 0; c < spec.channels; ++c) {
        right = right && element(spec, tensor, i / 9, i % 9, c) == expected_element(recipe, 114, c);
      }
    }
    CAPTURE(recipe.to_json());
    REQUIRE(right);
  }
}

TEST_CASE("normalised values are those of true divisions in that order",
          "[convert][tensor][golden]") {
  Recipe recipe;
  recipe.height = recipe.width = 1;
  recipe.dtype = DType::kFloat32;
  recipe.normalize = Normalization{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const TensorWriter writer(recipe);
  std::array<std::uint8_t, kPixelBytes + kRowSlack> pixel{0, 255, 128, 0};
  alignas(float) std::array<std::byte, 12> tensor{};
  writer.write(tensor, 0, 0, pixel.data(), 1);
  std::array<float, 3> values{};
  std::memcpy(values.data(), tensor.data(), 12);
  // float32 arithmetic by hand, printed with nine digits.
  CHECK(values[0] == -2.11790395F);
  CHECK(values[1] == 2.42857146F);
  CHECK(values[2] == 0.426492572F);
}

}  // namespace
}  // namespace precache
