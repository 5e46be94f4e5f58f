// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/pixel_pass.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <vector>

#include "formats/bytes/half_float.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/statistics.hpp"
#include "tests/support/targets.hpp"

namespace precache {
namespace {

using test::below;
using test::Random;
using test::spec_of;

constexpr Layout kOrders[] = {Layout::kChw, Layout::kHwc};
constexpr DType kTypes[] = {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32};
constexpr DType kFloatTypes[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32};
const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

/// Memory without slack at its end, so that ASan sees one byte too far, which begins some bytes
/// after a boundary of 64.
class Buffer {
 public:
  Buffer(std::size_t size, std::size_t skip)
      : memory_(static_cast<std::byte*>(::operator new(size + skip, kBoundary))),
        bytes_(memory_ + skip, size) {
    std::fill(memory_, memory_ + size + skip, std::byte{0xa5});
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::operator delete(memory_, kBoundary); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] bool is_untouched_before() const {
    return std::all_of(memory_, bytes_.data(), [](std::byte b) { return b == std::byte{0xa5}; });
  }

 private:
  static constexpr std::align_val_t kBoundary{64};
  std::byte* memory_;
  std::span<std::byte> bytes_;
};

std::uint32_t bits_of(float value, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return to_float16(value);
    case DType::kBfloat16:
      return to_bfloat16(value);
    default:
      return std::bit_cast<std::uint32_t>(value);
  }
}

/// The result of each pixel in each channel by the definition.
std::vector<std::uint32_t> pixel_table(const std::optional<Normalization>& normalize, DType dtype) {
  std::vector<std::uint32_t> table;
  for (std::size_t channel = 0; channel < 4; ++channel) {
    for (std::uint32_t pixel = 0; pixel < 256; ++pixel) {
      volatile float x = static_cast<float>(pixel);  // volatile: each step rounds by itself
      x = x / 255.0F;
      if (normalize && channel < 3) {
        x = x - normalize->mean[channel];
        x = x / normalize->std[channel];
      }
      table.push_back(dtype == DType::kUint8 ? pixel : bits_of(x, dtype));
    }
  }
  return table;
}

/// Channel, row and column of an element, and back.
std::size_t index_of(const TensorSpec& spec, std::size_t c, std::size_t y, std::size_t x) {
  return spec.layout == Layout::kChw ? (c * spec.height + y) * spec.width + x
                                     : (y * spec.width + x) * spec.channels + c;
}

/// The tensor by the definition; `convert` takes the bits of a stored element and its channel.
template <typename Convert>
test::Bytes expected_tensor(const TensorSpec& stored, const TensorSpec& result,
                            std::span<const std::byte> tensor, const AugmentationDraw& choice,
                            const Convert& convert) {
  test::Bytes out(result.size_bytes());
  const std::size_t in_size = size_bytes(stored.dtype);
  const std::size_t out_size = size_bytes(result.dtype);
  for (std::size_t c = 0; c < stored.channels; ++c) {
    for (std::size_t y = 0; y < result.height; ++y) {
      for (std::size_t x = 0; x < result.width; ++x) {
        const std::size_t from_x = choice.x + (choice.flip ? result.width - 1 - x : x);
        const std::size_t from = index_of(stored, c, choice.y + y, from_x) * in_size;
        const std::uint32_t bits = convert(
            static_cast<std::uint32_t>(test::little_endian(tensor.subspan(from, in_size))), c);
        std::memcpy(&out[index_of(result, c, y, x) * out_size], &bits, out_size);
      }
    }
  }
  return out;
}

/// Runs the pass on sources and destinations of several alignments and compares with `expected`.
void check_run(const PixelPass& pass, std::span<const std::byte> tensor,
               const AugmentationDraw& choice, const test::Bytes& expected) {
  const std::size_t element = size_bytes(pass.result().dtype);
  struct Variant {
    std::size_t source_skip, result_skip;
    bool stream;
  };
  for (const auto& [source_skip, result_skip, stream] :
       std::initializer_list<Variant>{{0, 0, false},
                                      {0, 0, true},
                                      {1, element, true},
                                      {3, 5 * element, false},
                                      {13, 16, true}}) {
    const Buffer source(tensor.size(), source_skip);
    std::copy(tensor.begin(), tensor.end(), source.bytes().begin());
    const Buffer out(expected.size(), result_skip);
    pass.run(source.bytes(), choice, out.bytes().data(), stream);
    if (stream) finish_streaming();
    CAPTURE(source_skip, result_skip, stream);
    REQUIRE(std::ranges::equal(out.bytes(), expected));
    REQUIRE(out.is_untouched_before());
  }
}

BatchTransform transform_of(const std::optional<Crop>& crop, DType dtype, Layout layout,
                            const std::optional<Normalization>& normalize = {}) {
  BatchTransform transform;
  transform.crop = crop;
  transform.flip = true;
  transform.dtype = dtype;
  transform.layout = layout;
  transform.normalize = normalize;
  return transform;
}

/// The crops at all four corners, flipped and not.
std::vector<AugmentationDraw> corners(const TensorSpec& stored, const TensorSpec& result) {
  std::vector<AugmentationDraw> choices;
  for (const bool flip : {false, true}) {
    choices.push_back({0, 0, flip});
    if (stored.height == result.height && stored.width == result.width) continue;
    choices.push_back({stored.height - result.height, stored.width - result.width, flip});
    choices.push_back(
        {(stored.height - result.height) / 2, (stored.width - result.width) / 2, flip});
  }
  return choices;
}

/// Checks all layouts, types and normalisations of tensors of `channels` whose result has this
/// size.
void check_pixels(std::uint32_t channels, std::uint32_t height, std::uint32_t width,
                  std::uint32_t free, Random& random) {
  for (const Layout from : kOrders) {
    const TensorSpec stored = spec_of(height + free, width + free, channels, DType::kUint8, from);
    const test::Bytes tensor = test::random_bytes(random, stored.size_bytes());
    for (const DType dtype : kTypes) {
      for (const auto& normalize : {std::optional<Normalization>(), std::optional(kImagenet)}) {
        if (normalize && (channels == 4 || dtype == DType::kUint8)) continue;
        const auto table = pixel_table(normalize, dtype);
        for (const Layout to : kOrders) {
          const std::optional<Crop> crop =
              free == 0 ? std::nullopt
                        : std::optional<Crop>({height, width, CropPosition::kRandom});
          const PixelPass pass(stored, transform_of(crop, dtype, to, normalize));
          for (const AugmentationDraw& choice : corners(stored, pass.result())) {
            CAPTURE(stored.text(), pass.result().text(), normalize.has_value(), choice.y, choice.x,
                    choice.flip, pass.math());
            check_run(pass, tensor, choice,
                      expected_tensor(stored, pass.result(), tensor, choice,
                                      [&](std::uint32_t pixel, std::size_t channel) {
                                        return table[channel * 256 + pixel];
                                      }));
          }
        }
      }
    }
  }
}

TEST_CASE("pixels of every size, layout and type follow the definition", "[reader][pixels]") {
  test::on_every_target([] {
    Random random(1);
    for (const std::uint32_t channels : {1U, 3U, 4U}) {
      for (const std::uint32_t width :
           {1U, 2U, 3U, 7U, 8U, 9U, 15U, 16U, 17U, 31U, 32U, 33U, 63U, 64U, 65U}) {
        check_pixels(channels, 1, width, 0, random);
        check_pixels(channels, 3, width, 2, random);
      }
      check_pixels(channels, 7, 5, 0, random);
    }
  });
}

TEST_CASE("pixels of a usual size follow the definition", "[reader][pixels]") {
  Random random(2);
  check_pixels(3, 2, 224, 32, random);
  check_pixels(1, 3, 224, 0, random);
  check_pixels(3, 3, 224, 0, random);
}

/// A random float of any magnitude and sign.
float random_float(Random& random, int smallest_exponent, int largest_exponent) {
  const int exponents = largest_exponent - smallest_exponent;
  const int exponent =
      smallest_exponent + static_cast<int>(below(random, static_cast<std::uint64_t>(exponents)));
  const double value = 1 + static_cast<double>(random() >> 11) * 0x1p-53;
  return static_cast<float>(std::ldexp(random() % 2 == 0 ? value : -value, exponent));
}

TEST_CASE("every normalisation is exact with every arithmetic", "[reader][pixels]") {
  test::on_every_target([] {
    Random random(3);
    std::map<std::pair<DType, PixelMath>, int> seen;
    test::Bytes tensor(3 * 256);
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<std::byte>(i);
    const TensorSpec stored = spec_of(1, 256, 3);
    for (int trial = 0; trial < 400; ++trial) {
      Normalization normalize;
      for (int channel = 0; channel < 3; ++channel) {
        const bool usual = trial % 2 == 0;
        normalize.mean[channel] = random_float(random, usual ? -3 : -126, usual ? 0 : 127);
        normalize.std[channel] = random_float(random, usual ? -4 : -140, usual ? 1 : 127);
      }
      if (trial == 0) normalize = Normalization();
      if (trial == 1) normalize = kImagenet;
      if (trial == 2) normalize = {{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};
      if (trial == 3) normalize = {{3e38F, -3e38F, 0}, {1e-45F, -1e-40F, 3e38F}};
      for (const DType dtype : kFloatTypes) {
        const PixelPass pass(stored, transform_of({}, dtype, Layout::kHwc, normalize));
        ++seen[{dtype, pass.math()}];
        const auto table = pixel_table(normalize, dtype);
        CAPTURE(trial, name(dtype), pass.math());
        for (const bool flip : {false, true}) {
          check_run(pass, tensor, {0, 0, flip},
                    expected_tensor(stored, pass.result(), tensor, {0, 0, flip},
                                    [&](std::uint32_t pixel, std::size_t channel) {
                                      return table[channel * 256 + pixel];
                                    }));
        }
      }
    }
    // The arithmetic depends on the type and the instruction set: without FMA and its conversions,
    // few float16 are exact by arithmetic. But each arithmetic is used for some.
    std::set<PixelMath> ways;
    for (const auto& [kind, times] : seen) ways.insert(kind.second);
    CHECK(ways.size() == 3);
  });
}

float value_of(std::uint32_t bits, DType dtype) {
  if (dtype == DType::kFloat16) return from_float16(static_cast<std::uint16_t>(bits));
  if (dtype == DType::kBfloat16) return from_bfloat16(static_cast<std::uint16_t>(bits));
  return std::bit_cast<float>(bits);
}

/// Checks all layouts and types of stored floats whose result has 5 rows of this width.
void check_floats(std::uint32_t channels, std::uint32_t width, std::uint32_t free, DType in,
                  Random& random) {
  for (const Layout from : kOrders) {
    const TensorSpec stored = spec_of(5 + free, width + free, channels, in, from);
    // Random bits: numbers of every size, NaNs, infinities and subnormals among them.
    test::Bytes tensor = test::random_bytes(random, stored.size_bytes());
    const std::uint32_t inf = bits_of(INFINITY, in);
    for (const std::uint32_t special : {inf, inf + 1, 1U, 0U}) {
      const std::size_t at = below(random, tensor.size() / size_bytes(in));
      std::memcpy(&tensor[at * size_bytes(in)], &special, size_bytes(in));
    }
    for (const DType dtype : kFloatTypes) {
      for (const Layout to : kOrders) {
        const std::optional<Crop> crop =
            free == 0 ? std::nullopt : std::optional<Crop>({5, width, CropPosition::kRandom});
        const PixelPass pass(stored, transform_of(crop, dtype, to));
        for (const AugmentationDraw& choice : corners(stored, pass.result())) {
          CAPTURE(stored.text(), pass.result().text(), choice.y, choice.x, choice.flip);
          check_run(pass, tensor, choice,
                    expected_tensor(stored, pass.result(), tensor, choice,
                                    [&](std::uint32_t bits, std::size_t) {
                                      return in == dtype ? bits
                                                         : bits_of(value_of(bits, in), dtype);
                                    }));
        }
      }
    }
  }
}

TEST_CASE("floats are moved and cast by the definition", "[reader][pixels]") {
  test::on_every_target([] {
    Random random(4);
    for (const std::uint32_t channels : {1U, 3U, 4U}) {
      for (const std::uint32_t width : {1U, 3U, 4U, 7U, 8U, 9U, 16U, 33U}) {
        for (const DType in : kFloatTypes) {
          check_floats(channels, width, 0, in, random);
          check_floats(channels, width, 3, in, random);
        }
      }
    }
  });
}

/// Every float16 and bfloat16, the values half-way between two of them, and their neighbours.
std::vector<float> telling_floats() {
  std::vector<float> values;
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto exact = std::bit_cast<std::uint32_t>(value_of(bits, dtype));
      const auto next = std::bit_cast<std::uint32_t>(value_of((bits + 1) % 0x10000, dtype));
      const std::uint32_t middle = exact / 2 + next / 2;
      for (const std::uint32_t near : {exact, middle - 1, middle, middle + 1}) {
        values.push_back(std::bit_cast<float>(near));
      }
    }
  }
  return values;
}

TEST_CASE("casts round every number by the definition", "[reader][pixels]") {
  const std::vector<float> values = telling_floats();
  test::on_every_target([&] {
    for (const DType in : kFloatTypes) {
      test::Bytes tensor(values.size() * size_bytes(in));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint32_t bits = bits_of(values[i], in);
        std::memcpy(&tensor[i * size_bytes(in)], &bits, size_bytes(in));
      }
      const auto width = static_cast<std::uint32_t>(values.size());
      const TensorSpec stored = spec_of(1, width, 1, in);
      for (const DType dtype : kFloatTypes) {
        if (dtype == in) continue;
        const PixelPass pass(stored, transform_of({}, dtype, Layout::kChw));
        CAPTURE(stored.text(), pass.result().text());
        check_run(pass, tensor, {},
                  expected_tensor(stored, pass.result(), tensor, {},
                                  [&](std::uint32_t bits, std::size_t) {
                                    return bits_of(value_of(bits, in), dtype);
                                  }));
      }
    }
  });
}

TEST_CASE("gray images need the numbers of one channel only", "[reader][pixels]") {
  const TensorSpec gray = spec_of(4, 40, 1);
  BatchTransform transform;
  transform.normalize = Normalization{{0.5F}, {0.25F}};  // the others are zero
  BatchTransform whole = transform;
  whole.normalize = Normalization{{0.5F, 0.5F, 0.5F}, {0.25F, 0.25F, 0.25F}};
  CHECK(PixelPass(gray, transform).math() == PixelPass(gray, whole).math());
}

}  // namespace
}  // namespace precache
