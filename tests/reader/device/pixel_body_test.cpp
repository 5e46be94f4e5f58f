// SPDX-License-Identifier: Apache-2.0
#include "reader/device/pixel_body.hpp"

#include <fmt/format.h>

#include <vector>

#include "reader/loader/pixel_pass.hpp"
#include "tests/reader/device/run_kernel.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"

namespace precache {
namespace {

using device::PixelWork;
using test::Bytes;
using test::spec_of;

constexpr DType kTypes[] = {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32};
constexpr Layout kOrders[] = {Layout::kChw, Layout::kHwc};
constexpr std::uint32_t kSamples = 5;

PixelWork work_of(const TensorSpec& stored, const PixelPass& pass) {
  PixelWork work;
  work.samples = kSamples;
  work.in_samples = kSamples;
  work.channels = stored.channels;
  work.in_height = stored.height;
  work.in_width = stored.width;
  work.height = pass.result().height;
  work.width = pass.result().width;
  work.in_hwc = stored.layout == Layout::kHwc;
  work.out_hwc = pass.result().layout == Layout::kHwc;
  work.in_type = stored.dtype;
  work.out_type = pass.result().dtype;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const ChannelRule& rule = pass.rules()[channel];
    for (std::size_t pixel = 0; pixel < 256; ++pixel) {
      work.table[channel][pixel] =
          work.out_type == DType::kFloat32 ? bits_of(rule.floats[pixel]) : rule.halves[pixel];
    }
  }
  return work;
}

/// Compares one batch by the kernel's body, in blocks of some threads, with the CPU's pass. Memory
/// has exactly the needed size, so that AddressSanitizer sees one byte too far.
void compare(const TensorSpec& stored, const BatchTransform& transform, std::uint32_t threads) {
  const PixelPass pass(stored, transform);
  PixelWork work = work_of(stored, pass);
  test::Random random(threads);
  const Bytes in = test::random_bytes(random, kSamples * stored.size_bytes());
  Bytes expected(kSamples * pass.result().size_bytes());
  Bytes out(expected.size(), std::byte{0xa5});
  std::vector<AugmentationDraw> choices;
  const std::vector<std::int64_t> labels{3, -1, 7, 0, INT64_MAX};
  std::vector<std::int64_t> labels_out(kSamples, 99);
  for (std::uint32_t i = 0; i < kSamples; ++i) {
    choices.push_back(pass.choose(1, 2, i));
    pass.run(std::span(in).subspan(i * stored.size_bytes(), stored.size_bytes()), choices[i],
             expected.data() + i * pass.result().size_bytes(), false);
  }
  work.in = in.data();
  work.out = out.data();
  work.choices = choices.data();
  work.labels_in = labels.data();
  work.stored_labels = labels.size();
  work.labels_out = labels_out.data();
  test::run_blocks(dim3(3, 2), threads, work);
  const bool equal = out == expected;
  CHECK(equal);
  CHECK(labels_out == labels);
}

/// No crop, the smallest crop, and crops whose rows are and are not whole stores.
std::vector<std::optional<Crop>> crops_of(const TensorSpec& stored) {
  return {std::nullopt,
          Crop{1, 1},
          Crop{stored.height, stored.width, CropPosition::kCenter},
          Crop{stored.height - 3, stored.width - 5},
          Crop{stored.height - 2, 16},
          Crop{3, 8, CropPosition::kCenter}};
}

TEST_CASE("the kernel's body does what the CPU's pass does, bit for bit", "[device][pixels]") {
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      if (from != DType::kUint8 && to == DType::kUint8) continue;
      for (const Layout in : kOrders) {
        for (const Layout out : kOrders) {
          for (const std::uint32_t channels : {1U, 3U, 4U}) {
            const TensorSpec stored = spec_of(13, 32, channels, from, in);
            for (const auto& crop : crops_of(stored)) {
              for (const bool flip : {false, true}) {
                BatchTransform transform;
                transform.crop = crop;
                transform.flip = flip;
                transform.dtype = to;
                transform.layout = out;
                CAPTURE(stored.text(), transform.result(stored).text(), flip);
                compare(stored, transform, 7);
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the kernel's body normalises as the CPU does", "[device][pixels]") {
  const std::vector<Normalization> rules{{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}},
                                         {{0.5F, 0.25F, -1.0F}, {0.1F, -3.0F, 1e-30F}},
                                         {{1e30F, 0, 1}, {1e-6F, 1e30F, 7}}};
  for (const Normalization& normalize : rules) {
    for (const DType to : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      for (const Layout in : kOrders) {
        for (const Layout out : kOrders) {
          for (const std::uint32_t channels : {1U, 3U}) {
            BatchTransform transform;
            transform.normalize = normalize;
            transform.dtype = to;
            transform.layout = out;
            transform.flip = true;
            transform.crop = Crop{20, 24};
            const TensorSpec stored = spec_of(25, 40, channels, DType::kUint8, in);
            CAPTURE(stored.text(), transform.result(stored).text());
            compare(stored, transform, 64);
          }
        }
      }
    }
  }
}

TEST_CASE("the kernel's body writes everything with any number of threads", "[device][pixels]") {
  BatchTransform transform;
  transform.dtype = DType::kFloat16;
  for (const std::uint32_t threads : {1U, 2U, 7U, 19U, 20U, 21U, 60U, 1000U}) {
    CAPTURE(threads);
    compare(spec_of(16, 10, 3), transform, threads);  // 60 stores
    compare(spec_of(7, 5, 3), transform, threads);    // the last one short
  }
}

TEST_CASE("accesses that a GPU cannot do are refused on the CPU too", "[device][pixels]") {
  using FourFloats = device::Pack<float, 4>;
  alignas(32) std::byte memory[64] = {};
  auto* const right = reinterpret_cast<FourFloats*>(memory);
  auto* const wrong = reinterpret_cast<FourFloats*>(memory + 24);
  CHECK_NOTHROW(device::move_aligned(right + 1, right));
  CHECK_THROWS_AS(device::move_aligned(right, wrong), std::logic_error);
  CHECK_THROWS_AS(device::move_aligned(wrong, right), std::logic_error);
}

}  // namespace
}  // namespace precache
