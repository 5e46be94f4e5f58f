// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/pixel_recovery.hpp"

#include <cstring>
#include <vector>

#include "formats/bytes/half_float.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

/// All pixels in all channels, by the definition.
std::vector<std::byte> tensor_of(const TensorSpec& spec, const Normalization& rule,
                                 std::span<const std::uint8_t> pixels) {
  std::vector<std::byte> tensor(spec.size_bytes());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t channel = spec.layout == Layout::kHwc
                                    ? i % spec.channels
                                    : i / (std::size_t{spec.height} * spec.width);
    const float value = rule(pixels[i], channel);
    const std::uint16_t half =
        spec.dtype == DType::kFloat16 ? to_float16(value) : to_bfloat16(value);
    if (spec.dtype == DType::kFloat32) {
      std::memcpy(tensor.data() + i * 4, &value, 4);
    } else {
      std::memcpy(tensor.data() + i * 2, &half, 2);
    }
  }
  return tensor;
}

TEST_CASE("every pixel is recovered from every float type, layout and normalisation",
          "[convert][pixel_recovery]") {
  std::vector<std::uint8_t> pixels(3 * 256);
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      for (const Normalization& rule :
           {Normalization(), kImagenet, Normalization{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}}}) {
        const TensorSpec spec{dtype, layout, 16, 16, 3};
        for (std::size_t i = 0; i < pixels.size(); ++i) {
          pixels[i] = static_cast<std::uint8_t>(layout == Layout::kHwc ? i / 3 : i);
        }
        CAPTURE(spec.text(), rule.mean[0]);
        const PixelRecovery recovery(spec, rule);
        REQUIRE(recovery.is_possible());
        std::vector<std::uint8_t> found(pixels.size());
        CHECK(recovery.run(tensor_of(spec, rule, pixels), found));
        CHECK(found == pixels);
      }
    }
  }
}

TEST_CASE("a value that no pixel gives is refused", "[convert][pixel_recovery][malformed]") {
  const TensorSpec spec{DType::kFloat32, Layout::kChw, 1, 1, 1};
  const PixelRecovery recovery(spec, {});
  std::vector<std::uint8_t> found(1);
  for (const float value :
       {-0.001F, 0.5F, 1.001F, -1e30F, 1e30F, -0.0F, std::nanf(""),
        std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    CAPTURE(value);
    CHECK_FALSE(recovery.run(std::as_bytes(std::span(&value, 1)), found));
  }
  const float right = 77.0F / 255.0F;
  CHECK(recovery.run(std::as_bytes(std::span(&right, 1)), found));
  CHECK(found[0] == 77);
}

TEST_CASE("pixels that a normalisation made equal cannot be recovered",
          "[convert][pixel_recovery]") {
  // Far from zero, bfloat16 has steps larger than a pixel.
  const Normalization shifted{{-100, -100, -100}, {1, 1, 1}};
  CHECK_FALSE(PixelRecovery({DType::kBfloat16, Layout::kChw, 2, 2, 3}, shifted).is_possible());
  // The normalisation of missing channels is ignored.
  const Normalization gray{{0.5F, -100, -100}, {0.5F, 1, 1}};
  CHECK(PixelRecovery({DType::kBfloat16, Layout::kChw, 2, 2, 1}, gray).is_possible());
}

}  // namespace
}  // namespace precache
