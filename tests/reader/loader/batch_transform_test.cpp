// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/batch_transform.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "precache/formats/error.hpp"
#include "reader/loader/pixel_pass.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/statistics.hpp"

namespace precache {
namespace {

using test::deviation;
using test::spec_of;

const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

BatchTransform crop_of(std::uint32_t height, std::uint32_t width,
                       CropPosition place = CropPosition::kRandom) {
  BatchTransform transform;
  transform.crop = {height, width, place};
  return transform;
}

BatchTransform with_dtype(DType dtype) {
  BatchTransform transform;
  transform.dtype = dtype;
  return transform;
}

BatchTransform with_normalization(const Normalization& normalize, std::optional<DType> dtype = {}) {
  BatchTransform transform;
  transform.normalize = normalize;
  transform.dtype = dtype;
  return transform;
}

TEST_CASE("a transform gives the spec of the result", "[reader][pixels]") {
  const TensorSpec stored = spec_of(9, 7, 3);
  CHECK(BatchTransform().result(stored) == stored);
  BatchTransform flip;
  flip.flip = true;
  CHECK(flip.result(stored) == stored);
  CHECK(crop_of(5, 6).result(stored) == spec_of(5, 6, 3));
  CHECK(crop_of(9, 7).result(stored) == stored);
  CHECK(with_dtype(DType::kFloat16).result(stored) == spec_of(9, 7, 3, DType::kFloat16));
  CHECK(with_normalization(kImagenet).result(stored) == spec_of(9, 7, 3, DType::kFloat32));
  CHECK(with_normalization(kImagenet, DType::kBfloat16).result(stored) ==
        spec_of(9, 7, 3, DType::kBfloat16));
  BatchTransform order;
  order.layout = Layout::kHwc;
  CHECK(order.result(stored) == spec_of(9, 7, 3, DType::kUint8, Layout::kHwc));
  const TensorSpec halves = spec_of(9, 7, 4, DType::kFloat16, Layout::kHwc);
  CHECK(order.result(halves) == halves);
  CHECK(with_dtype(DType::kFloat32).result(halves) ==
        spec_of(9, 7, 4, DType::kFloat32, Layout::kHwc));
}

TEST_CASE("parts of a transform that do not fit are refused", "[reader][pixels][malformed]") {
  const auto refusal = [](const BatchTransform& transform, const TensorSpec& stored) {
    CHECK_THROWS_AS(PixelPass(stored, transform), InvalidArgument);
    return test::message_of<InvalidArgument>([&] { (void)transform.result(stored); });
  };
  const TensorSpec stored = spec_of(9, 7, 3);
  for (const auto& [height, width] : {std::pair{0U, 5U},
                                      {5U, 0U},
                                      {10U, 7U},
                                      {9U, 8U},
                                      {UINT32_MAX, UINT32_MAX},
                                      {0U, 0U},
                                      {7U, 9U}}) {
    CAPTURE(height, width);
    CHECK_THAT(refusal(crop_of(height, width), stored), test::contains("crop"));
    CHECK_THAT(refusal(crop_of(height, width, CropPosition::kCenter), stored),
               test::contains("9x7"));
  }
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    const TensorSpec floats = spec_of(9, 7, 3, dtype);
    CHECK_THAT(refusal(with_dtype(DType::kUint8), floats), test::contains("uint8"));
    CHECK_THAT(refusal(with_normalization(kImagenet), floats), test::contains("`normalize`"));
    CHECK_THAT(refusal(with_normalization(kImagenet, DType::kFloat32), floats),
               test::contains("`normalize`"));
  }
  CHECK_THAT(refusal(with_normalization(kImagenet, DType::kUint8), stored),
             test::contains("uint8"));
  for (const std::uint32_t channels : {2U, 4U, 5U}) {
    CHECK_THAT(refusal(with_normalization(kImagenet), spec_of(9, 7, channels)),
               test::contains("channels"));
  }
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (const auto& [mean, std] : {std::pair{0.5F, 0.0F},
                                    {0.5F, -0.0F},
                                    {0.5F, kInf},
                                    {0.5F, -kInf},
                                    {0.5F, NAN},
                                    {kInf, 1.0F},
                                    {NAN, 1.0F}}) {
      CAPTURE(channel, mean, std);
      Normalization normalize = kImagenet;
      normalize.mean[channel] = mean;
      normalize.std[channel] = std;
      CHECK_THAT(refusal(with_normalization(normalize), stored),
                 test::contains("standard deviation"));
      // With one channel, only the first number counts.
      const BatchTransform transform = with_normalization(normalize);
      if (channel != 0) CHECK_NOTHROW((void)transform.result(spec_of(9, 7, 1)));
    }
  }
}

TEST_CASE("a pass knows when tensors do not change", "[reader][pixels]") {
  const auto is_copy = [](const TensorSpec& stored, const BatchTransform& transform) {
    return PixelPass(stored, transform).is_copy();
  };
  const TensorSpec stored = spec_of(9, 7, 3);
  BatchTransform flip;
  flip.flip = true;
  BatchTransform hwc;
  hwc.layout = Layout::kHwc;
  CHECK(is_copy(stored, {}));
  CHECK(is_copy(stored, crop_of(9, 7)));
  CHECK(is_copy(stored, with_dtype(DType::kUint8)));
  CHECK(is_copy(spec_of(9, 7, 1), hwc));
  CHECK(is_copy(spec_of(9, 7, 3, DType::kFloat16), {}));
  CHECK_FALSE(is_copy(stored, flip));
  CHECK_FALSE(is_copy(spec_of(9, 7, 1), flip));
  CHECK_FALSE(is_copy(stored, hwc));
  CHECK_FALSE(is_copy(stored, crop_of(9, 6)));
  CHECK_FALSE(is_copy(spec_of(9, 7, 1), crop_of(8, 7)));
  CHECK_FALSE(is_copy(stored, with_dtype(DType::kFloat32)));
  CHECK_FALSE(is_copy(stored, with_normalization(Normalization())));
  CHECK_FALSE(is_copy(spec_of(9, 7, 1, DType::kFloat16), with_dtype(DType::kBfloat16)));
}

TEST_CASE("all positions of crops are equally likely, flipped or not", "[reader][pixels]") {
  BatchTransform transform = crop_of(16, 24);
  transform.flip = true;
  const PixelPass pass(spec_of(20, 30, 3), transform);
  std::vector<std::uint64_t> by_sample(5 * 7 * 2);
  std::vector<std::uint64_t> by_epoch(5 * 7 * 2);
  for (std::uint64_t i = 0; i < 5 * 7 * 2 * 100; ++i) {
    const AugmentationDraw of_sample = pass.choose(1, 2, i);
    ++by_sample.at((of_sample.y * 7 + of_sample.x) * 2 + (of_sample.flip ? 1 : 0));
    const AugmentationDraw of_epoch = pass.choose(1, i, 2);
    ++by_epoch.at((of_epoch.y * 7 + of_epoch.x) * 2 + (of_epoch.flip ? 1 : 0));
  }
  CHECK(std::abs(deviation(by_sample, 100)) < 5);
  CHECK(std::abs(deviation(by_epoch, 100)) < 5);
}

TEST_CASE("a crop does not change which samples are flipped", "[reader][pixels]") {
  const TensorSpec stored = spec_of(20, 30, 3);
  BatchTransform alone;
  alone.flip = true;
  const PixelPass without(stored, alone);
  for (BatchTransform transform :
       {crop_of(16, 24), crop_of(1, 1), crop_of(20, 30), crop_of(3, 30, CropPosition::kCenter)}) {
    transform.flip = true;
    const PixelPass with(stored, transform);
    std::uint64_t others = 0;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      others += with.choose(3, 4, i).flip == without.choose(3, 4, i).flip ? 0 : 1;
    }
    CHECK(others == 0);
  }
}

TEST_CASE("without a crop or a flip nothing is drawn", "[reader][pixels]") {
  const TensorSpec stored = spec_of(20, 31, 3);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const AugmentationDraw nothing = PixelPass(stored, {}).choose(5, 6, i);
    REQUIRE((nothing.y == 0 && nothing.x == 0 && !nothing.flip));
    const AugmentationDraw centre =
        PixelPass(stored, crop_of(17, 24, CropPosition::kCenter)).choose(5, 6, i);
    REQUIRE((centre.y == 2 && centre.x == 4 && !centre.flip));  // 1.5 and 3.5, to even
    REQUIRE_FALSE(PixelPass(stored, crop_of(17, 24)).choose(5, 6, i).flip);
  }
}

TEST_CASE("draws depend only on seed, epoch and sample", "[reader][pixels]") {
  BatchTransform transform = crop_of(1000, 1000);
  transform.flip = true;
  const TensorSpec stored = spec_of(60'000, 60'000, 3);
  const PixelPass pass(stored, transform);
  transform.dtype = DType::kFloat16;
  transform.layout = Layout::kHwc;
  const PixelPass other(stored, transform);
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
      for (std::uint64_t sample = 0; sample < 20; ++sample) {
        const AugmentationDraw choice = pass.choose(seed, epoch, sample);
        const AugmentationDraw again = other.choose(seed, epoch, sample);
        REQUIRE((choice.y == again.y && choice.x == again.x && choice.flip == again.flip));
        seen.insert({choice.y, choice.x});
      }
    }
  }
  CHECK(seen.size() == 500);  // two of 59001^2 places are the same in one case of 10^4
}

}  // namespace
}  // namespace precache
