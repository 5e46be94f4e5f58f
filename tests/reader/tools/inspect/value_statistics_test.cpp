// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/inspect/value_statistics.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "formats/bytes/half_float.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"

namespace precache {
namespace {

using test::Bytes;

Bytes tensor_of(const TensorSpec& spec, const std::vector<float>& values) {
  Bytes bytes(spec.size_bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* const at = bytes.data() + i * size_bytes(spec.dtype);
    if (spec.dtype == DType::kUint8) {
      *at = static_cast<std::byte>(values[i]);
    } else if (spec.dtype == DType::kFloat32) {
      std::memcpy(at, &values[i], 4);
    } else {
      const std::uint16_t bits =
          spec.dtype == DType::kFloat16 ? to_float16(values[i]) : to_bfloat16(values[i]);
      std::memcpy(at, &bits, 2);
    }
  }
  return bytes;
}

ValueFacts measure(const TensorSpec& spec, const std::vector<Bytes>& tensors, unsigned threads) {
  return measure_values(
      spec, tensors.size(),
      [&](std::uint64_t i) {
        return HeldTensor{tensors[i], nullptr};
      },
      threads);
}

TEST_CASE("values of all types are measured by channel", "[reader][inspect]") {
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      CAPTURE(name(dtype), name(layout));
      const TensorSpec spec = test::spec_of(2, 2, 2, dtype, layout);
      // Channel 0 has 0, 2, 4, 6 and channel 1 has 10 four times.
      const std::vector<float> chw{0, 2, 4, 6, 10, 10, 10, 10};
      const std::vector<float> hwc{0, 10, 2, 10, 4, 10, 6, 10};
      const Bytes tensor = tensor_of(spec, layout == Layout::kChw ? chw : hwc);
      const ValueFacts facts = measure(spec, {tensor, tensor}, 1);
      CHECK(facts.samples_read == 2);
      REQUIRE(facts.channels.size() == 2);
      CHECK(facts.channels[0].min == 0);
      CHECK(facts.channels[0].max == 6);
      CHECK(facts.channels[0].mean == 3);
      CHECK(facts.channels[0].std == Approx(std::sqrt(5.0)));
      CHECK(facts.channels[1].min == 10);
      CHECK(facts.channels[1].std == 0);
      const auto& histogram = facts.channels[0].histogram;
      CHECK(std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0}) == 8);
      CHECK(facts.low == 0);
      CHECK(facts.high == (dtype == DType::kUint8 ? 256 : 10));
      CHECK(facts.channels[1].histogram.back() == (dtype == DType::kUint8 ? 0 : 8));
    }
  }
}

TEST_CASE("values that are not finite are counted and left out", "[reader][inspect]") {
  const TensorSpec spec = test::spec_of(1, 4, 1, DType::kFloat32);
  const float infinity = std::numeric_limits<float>::infinity();
  const ValueFacts facts = measure(spec, {tensor_of(spec, {1, NAN, -infinity, 3})}, 1);
  CHECK(facts.channels[0].non_finite == 2);
  CHECK(facts.channels[0].min == 1);
  CHECK(facts.channels[0].max == 3);
  CHECK(facts.channels[0].mean == 2);
  const ValueFacts nothing = measure(spec, {tensor_of(spec, {NAN, NAN, NAN, NAN})}, 1);
  CHECK(nothing.channels[0].non_finite == 4);
  CHECK(nothing.channels[0].mean == 0);
}

TEST_CASE("values do not depend on the number of threads", "[reader][inspect][concurrency]") {
  test::Random random(3);
  const TensorSpec spec = test::spec_of(5, 7, 3, DType::kFloat32);
  std::vector<Bytes> tensors;
  for (int i = 0; i < 200; ++i) {
    std::vector<float> values(105);
    for (float& value : values) value = static_cast<float>(test::below(random, 1'000'000)) / 7;
    tensors.push_back(tensor_of(spec, values));
  }
  const ValueFacts one = measure(spec, tensors, 1);
  const ValueFacts four = measure(spec, tensors, 4);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    CHECK(one.channels[channel].mean == four.channels[channel].mean);
    CHECK(one.channels[channel].std == four.channels[channel].std);
    CHECK(one.channels[channel].histogram == four.channels[channel].histogram);
  }
}

TEST_CASE("many channels are measured as one", "[reader][inspect]") {
  const TensorSpec spec = test::spec_of(1, 1, 17, DType::kUint8);
  std::vector<float> values(17);
  std::iota(values.begin(), values.end(), 0.0F);
  const ValueFacts facts = measure(spec, {tensor_of(spec, values)}, 1);
  REQUIRE(facts.channels.size() == 1);
  CHECK(facts.channels[0].max == 16);
}

TEST_CASE("an exception from a tensor's owner ends the measurement", "[reader][inspect]") {
  const TensorSpec spec = test::spec_of(1, 1, 1);
  const auto refuse = [](std::uint64_t) -> HeldTensor { throw std::runtime_error("gone"); };
  CHECK_THROWS_AS(measure_values(spec, 100, refuse, 4), std::runtime_error);
}

}  // namespace
}  // namespace precache
