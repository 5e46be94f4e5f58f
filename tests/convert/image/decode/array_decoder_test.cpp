// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/array_decoder.hpp"

#include <cmath>
#include <limits>

#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

/// Collects the first three bytes of every pixel.
class Pixels : public RowSink {
 public:
  explicit Pixels(std::uint32_t width) : width_(width) {}
  void take_row(const std::uint8_t* pixels) override {
    for (std::uint32_t x = 0; x < width_; ++x) {
      for (int c = 0; c < 3; ++c) values.push_back(pixels[x * kPixelBytes + c]);
    }
  }
  std::vector<int> values;

 private:
  std::uint32_t width_;
};

struct Outcome {
  std::vector<int> values;
  std::string reason;
};

template <typename T>
Outcome decode(const std::vector<T>& numbers, const ArrayImage& image, const Region& region) {
  // Shifted by one byte, because rows of a file are not aligned.
  std::vector<std::byte> bytes(1);
  const auto raw = std::as_bytes(std::span(numbers));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  ArrayDecoder decoder;
  decoder.expect(image);
  ImageHeader header;
  REQUIRE_FALSE(decoder.open(std::span<const std::byte>(bytes).subspan(1), header));
  CHECK(header.width == image.pixels.width);
  CHECK(header.height == image.pixels.height);
  Pixels pixels(region.width);
  const auto rejection = decoder.decode(region, pixels);
  return {pixels.values, rejection ? rejection->reason : ""};
}

/// One row of grey pixels.
template <typename T>
Outcome decode_row(const std::vector<T>& numbers, PixelType type, bool is_unit_range = false) {
  const auto width = static_cast<std::uint32_t>(numbers.size());
  Outcome outcome =
      decode(numbers, {{type, Layout::kHwc, 1, width, 1}, is_unit_range}, {0, 0, width, 1});
  std::vector<int> first;
  for (std::size_t i = 0; i < outcome.values.size(); i += 3) {
    CHECK(outcome.values[i] == outcome.values[i + 1]);
    CHECK(outcome.values[i] == outcome.values[i + 2]);
    first.push_back(outcome.values[i]);
  }
  outcome.values = first;
  return outcome;
}

using Ints = std::vector<int>;

TEST_CASE("numbers of arrays become brightness", "[convert][decode]") {
  CHECK(decode_row<std::uint8_t>({0, 7, 255}, PixelType::kUint8).values == Ints{0, 7, 255});
  CHECK(decode_row<std::uint16_t>({0, 255, 256, 65535}, PixelType::kUint16).values ==
        Ints{0, 0, 1, 255});
  CHECK(decode_row<std::int32_t>({0, 7, 255}, PixelType::kInt32).values == Ints{0, 7, 255});
  CHECK(decode_row<float>({0, 0.49F, 0.5F, 254.4F, 254.5F, 255}, PixelType::kFloat32).values ==
        Ints{0, 0, 1, 254, 255, 255});
  CHECK(decode_row<float>({0, 0.5F, 1, 1 / 255.0F}, PixelType::kFloat32, true).values ==
        Ints{0, 128, 255, 1});
}

TEST_CASE("an array with a number out of range is rejected", "[convert][decode]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(decode_row<std::int32_t>({0, 256}, PixelType::kInt32).reason,
             test::contains("256 is not between 0 and 255"));
  CHECK_THAT(decode_row<std::int32_t>({-1}, PixelType::kInt32).reason, test::contains("-1"));
  CHECK_THAT(decode_row<float>({0, nan}, PixelType::kFloat32).reason, test::contains("nan"));
  CHECK_THAT(decode_row<float>({INFINITY}, PixelType::kFloat32).reason, test::contains("inf"));
  CHECK_THAT(decode_row<float>({1.01F}, PixelType::kFloat32, true).reason,
             test::contains("not between 0 and 1"));
  // Also outside the region that a recipe uses.
  CHECK_FALSE(
      decode<float>({0, nan}, {{PixelType::kFloat32, Layout::kHwc, 2, 1, 1}, false}, {0, 0, 1, 1})
          .reason.empty());
}

TEST_CASE("axes of arrays are put in order and alpha is dropped", "[convert][decode]") {
  std::vector<std::uint8_t> numbers(2 * 3 * 4);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint8_t>(i);
  const Region right{1, 1, 2, 1};  // of the lower row, all but the first pixel
  CHECK(decode(numbers, {{PixelType::kUint8, Layout::kHwc, 2, 3, 4}, false}, right).values ==
        Ints{16, 17, 18, 20, 21, 22});
  CHECK(decode(numbers, {{PixelType::kUint8, Layout::kChw, 2, 3, 4}, false}, right).values ==
        Ints{4, 10, 16, 5, 11, 17});
  numbers.resize(2 * 3 * 3);
  CHECK(decode(numbers, {{PixelType::kUint8, Layout::kHwc, 2, 3, 3}, false}, right).values ==
        Ints{12, 13, 14, 15, 16, 17});
  numbers.resize(2 * 3);
  CHECK(decode(numbers, {{PixelType::kUint8, Layout::kChw, 2, 3, 1}, false}, right).values ==
        Ints{4, 4, 4, 5, 5, 5});
}

}  // namespace
}  // namespace precache
