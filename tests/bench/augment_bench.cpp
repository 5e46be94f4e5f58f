// SPDX-License-Identifier: Apache-2.0
// Prints how many images one core crops and resizes in a second.
//
//   augment_bench DATASET... [--rounds N] [--avx2]
//
// Each DATASET has tensors of uint8, at least 224x224 (for example of `precache build --fit
// stretch --size 256`). The figures are of the processor time of one loading thread, from the page
// cache, to normalised float16 of 224x224. The best of the rounds counts, since the machine may do
// other work. The first line of each dataset is a random crop without resizing: the bound. --avx2
// leaves out the instructions that came after AVX2, as on machines that do not have them.
#include <fmt/format.h>
#include <hwy/targets.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "precache/formats/error.hpp"
#include "precache/reader.hpp"

namespace {

using namespace precache;

constexpr std::uint32_t kSide = 224;

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Measure {
  std::string label;
  BatchTransform transform;
};

BatchTransform listed(std::vector<Operation> operations) {
  BatchTransform transform;
  transform.augmentation.operations = std::move(operations);
  return transform;
}

std::vector<Measure> measures() {
  const RandomResizedCrop bilinear{.height = kSide, .width = kSide};
  RandomResizedCrop bicubic = bilinear;
  bicubic.interpolation = Interpolation::kBicubic;
  const RandomHorizontalFlip flip;
  const Range factor{0.6, 1.4};
  const ColorJitter jitter{.brightness = factor, .contrast = factor, .saturation = factor};
  ColorJitter hue = jitter;
  hue.hue = Range{-0.1, 0.1};
  const RandomRotation rotation{.degrees = {-15, 15}, .interpolation = Interpolation::kBilinear};
  BatchTransform plain;
  plain.crop = Crop{kSide, kSide};
  plain.flip = true;
  BatchTransform views;
  const RandomResizedCrop local{.height = 96, .width = 96, .scale = {0.05, 0.32}};
  views.views.assign(2, {{bilinear, flip}});
  views.views.insert(views.views.end(), 8, {{local, flip}});
  return {{"random crop and flip, without a list", plain},
          {"RandomResizedCrop, flip", listed({bilinear, flip})},
          {"RandomResizedCrop (bicubic), flip", listed({bicubic, flip})},
          {"RandomResizedCrop, flip, ColorJitter", listed({bilinear, flip, jitter})},
          {"RandomResizedCrop, flip, ColorJitter with hue", listed({bilinear, flip, hue})},
          {"RandomResizedCrop, flip, RandomRotation", listed({bilinear, flip, rotation})},
          {"RandomResizedCrop, flip, TrivialAugmentWide",
           listed({bilinear, flip, TrivialAugmentWide{}})},
          {"2 crops of 224 and 8 of 96", views}};
}

/// Leaves out the instruction sets that are better than AVX2: on x86, they have the lower bits.
/// REQUIRES: no pixel was computed yet.
void use_avx2() {
#if HWY_ARCH_X86
  if ((hwy::SupportedTargets() & (HWY_AVX2 | (HWY_AVX2 - 1))) == 0) {
    throw std::runtime_error("--avx2 needs a processor with AVX2");
  }
  hwy::DisableTargets(HWY_AVX2 - 1);
#else
  throw std::runtime_error("--avx2 needs a processor with AVX2");
#endif
}

/// Processor seconds of one epoch, and its number of images.
double best_rate(const Dataset& dataset, const Measure& measure, int rounds) {
  LoaderOptions options;
  options.threads = 1;
  options.batch_size = std::min<std::uint64_t>(256, dataset.size());
  options.order.shuffle = Shuffle::kFull;
  options.transform = measure.transform;
  options.transform.normalize = Normalization{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  options.transform.dtype = DType::kFloat16;
  Loader loader(dataset, options);
  double best = 0;
  for (int round = -1; round < rounds; ++round) {
    const double begin = processor_seconds();
    std::uint64_t images = 0;
    while (const auto batch = loader.next()) images += batch->size();
    const double rate = static_cast<double>(images) / (processor_seconds() - begin);
    if (round >= 0) best = std::max(best, rate);  // the first one warms up
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  try {
    int rounds = 15;
    const bool is_avx2 = std::erase(paths, "--avx2") != 0;
    if (is_avx2) use_avx2();
    if (paths.size() >= 2 && paths[paths.size() - 2] == "--rounds") {
      rounds = std::stoi(paths.back());
      paths.resize(paths.size() - 2);
    }
    if (paths.empty()) {
      fmt::print(stderr, "usage: augment_bench DATASET... [--rounds N] [--avx2]\n");
      return 2;
    }
    for (const std::string& path : paths) {
      const Dataset dataset = Dataset::open(path);
      const TensorSpec spec = dataset.spec();
      fmt::print("\n{}: {} images of {}x{}, images/s of one core{}\n", path, dataset.size(),
                 spec.height, spec.width, is_avx2 ? ", AVX2" : "");
      double bound = 0;
      for (const Measure& measure : measures()) {
        const double rate = best_rate(dataset, measure, rounds);
        if (bound == 0) bound = rate;
        fmt::print("  {:<46} {:>8.0f}  {:6.1f} us  {:.2f} of the bound\n", measure.label, rate,
                   1e6 / rate, rate / bound);
        std::fflush(stdout);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "augment_bench: {}\n", error.what());
    return 3;
  }
}
