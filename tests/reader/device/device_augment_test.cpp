// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "precache/formats/error.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::by_path;
using test::epoch_of;
using test::FakeMachine;
using test::make_dataset;
using test::spec_of;

constexpr DevicePath kPaths[] = {DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather,
                                 DevicePath::kResident};
const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

LoaderOptions options_for(DevicePath path) {
  LoaderOptions options;
  options.batch_size = 5;
  options.seed = 7;
  options.last_batch = LastBatch::kKeep;
  options.threads = 2;
  if (path != DevicePath::kStrided) options.order.shuffle = Shuffle::kFull;
  return options;
}

/// Two epochs of both loaders.
void compare(const Dataset& dataset, const LoaderOptions& options, DevicePath path) {
  Loader expected(dataset, options);
  DeviceLoader loader(dataset, options, by_path(path));
  REQUIRE(loader.views() == expected.views());
  for (std::size_t view = 0; view < loader.views(); ++view) {
    CHECK(loader.view_spec(view) == expected.view_spec(view));
  }
  for (int epoch = 0; epoch < 2; ++epoch) {
    const bool equal = epoch_of(loader) == epoch_of(expected);
    CHECK(equal);
  }
}

/// Compares a list by two paths.
void compare_pixels(const TensorSpec& stored, const Augmentation& list) {
  const test::TempFolder folder;
  const Dataset dataset =
      Dataset::open(make_dataset(folder.path(), {.spec = stored, .shards = {5, 3}}).folder);
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kResident}) {
    LoaderOptions options = options_for(path);
    options.transform.augmentation = list;
    CAPTURE(name(path));
    compare(dataset, options, path);
  }
}

/// Compares a list by every path, and with both layouts.
void compare_list(const TensorSpec& stored, const Augmentation& list,
                  const std::vector<NamedColumn>& columns = {}, std::uint64_t samples = 5) {
  for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
    TensorSpec spec = stored;
    spec.layout = layout;
    const test::TempFolder folder;
    const Dataset dataset = Dataset::open(
        make_dataset(
            folder.path(),
            {.spec = spec, .shards = {samples, 3}, .columns = columns, .has_real_sizes = true})
            .folder);
    for (const DevicePath path : kPaths) {
      LoaderOptions options = options_for(path);
      options.transform.augmentation = list;
      CAPTURE(name(path), spec.text());
      compare(dataset, options, path);
    }
  }
}

NamedColumn size_column() {
  NamedColumn column;
  column.name = "size";
  column.type = ValueType::kInt32;
  column.shape = {2};
  return column;
}

constexpr std::array<double, 2> center_shares() { return {0.3, 0.2}; }
constexpr std::array<double, 4> shears() { return {-20, 20, -10, 10}; }

constexpr std::pair<std::uint32_t, std::uint32_t> kSizes[] = {
    {1, 1}, {2, 3}, {20, 20}, {17, 31}, {40, 9}};

TEST_CASE("resized crops on the device are those of a Loader", "[device][augment]") {
  const FakeMachine machine;
  for (const auto interpolation :
       {Interpolation::kNearest, Interpolation::kBilinear, Interpolation::kBicubic}) {
    for (const auto& [height, width] : kSizes) {
      CAPTURE(interpolation, height, width);
      const TensorSpec stored = spec_of(height, width, 3);
      compare_pixels(
          stored, {{RandomResizedCrop{.height = 11, .width = 13, .interpolation = interpolation}}});
      compare_pixels(stored, {{Resize{.height = 24, .width = 7, .interpolation = interpolation}}});
      compare_pixels(stored, {{Resize{.height = 14, .interpolation = interpolation}}});
      compare_pixels(stored,
                     {{Resize{.height = height, .width = 15, .interpolation = interpolation}}});
      compare_pixels(stored,
                     {{Resize{.height = 15, .width = width, .interpolation = interpolation}}});
    }
  }
}

TEST_CASE("a resize to many times the size and back is exact on the device", "[device][augment]") {
  const FakeMachine machine;
  for (const auto interpolation : {Interpolation::kBilinear, Interpolation::kBicubic}) {
    compare_pixels(spec_of(5, 6, 1),
                   {{Resize{.height = 201, .width = 190, .interpolation = interpolation},
                     Resize{.height = 2, .width = 3, .interpolation = interpolation}}});
  }
}

TEST_CASE("crops, borders, flips and turns on the device are those of a Loader",
          "[device][augment]") {
  const FakeMachine machine;
  const TensorSpec stored = spec_of(12, 12, 3);
  for (const PaddingMode mode : {PaddingMode::kConstant, PaddingMode::kEdge, PaddingMode::kReflect,
                                 PaddingMode::kSymmetric}) {
    CAPTURE(mode);
    compare_list(stored, {{RandomCrop{.height = 12,
                                      .width = 12,
                                      .padding = {4, 3, 2, 1},
                                      .fill = {10, 20, 30},
                                      .padding_mode = mode},
                           RandomHorizontalFlip{.p = 0.5, .alternate = true}}});
    compare_list(stored, {{RandomHorizontalFlip{}, RandomCrop{.height = 16,
                                                              .width = 15,
                                                              .pad_if_needed = true,
                                                              .fill = {77},
                                                              .padding_mode = mode}}});
  }
  compare_list(stored, {{CenterCrop{.height = 5, .width = 8}}});
  compare_list(stored, {{CenterCrop{.height = 15, .width = 14}, RandomVerticalFlip{}}});
  compare_list(stored, {{RandomQuarterTurn{}, RandomHorizontalFlip{}, RandomQuarterTurn{},
                         RandomVerticalFlip{}, RandomCrop{.height = 7, .width = 9}}});
  compare_list(stored, {{RandomQuarterTurn{}, RandomResizedCrop{.height = 9, .width = 8},
                         RandomVerticalFlip{.p = 1},
                         RandomCrop{.height = 10, .width = 12, .padding = {2, 2, 2, 2}},
                         RandomApply{{RandomHorizontalFlip{}, RandomVerticalFlip{}}, 0.5},
                         Resize{.height = 6, .width = 7}}});
}

TEST_CASE("colours change on the device as in a Loader", "[device][augment]") {
  const FakeMachine machine;
  const Operation colours[] = {ColorJitter{.brightness = Range{0, 2}},
                               ColorJitter{.contrast = Range{0.1, 3}},
                               ColorJitter{.saturation = Range{0, 2.5}},
                               ColorJitter{.hue = Range{-0.5, 0.5}},
                               ColorJitter{.brightness = Range{0.6, 1.4},
                                           .contrast = Range{0.6, 1.4},
                                           .saturation = Range{0.6, 1.4},
                                           .hue = Range{-0.1, 0.1}},
                               RandomGrayscale{.p = 0.7},
                               RandomSolarize{.threshold = 99.5, .p = 0.8},
                               RandomSolarize{.threshold = 256, .p = 1},
                               RandomPosterize{.bits = 3, .p = 0.8},
                               RandomPosterize{.bits = 8, .p = 1},
                               RandomInvert{.p = 0.6},
                               RandomEqualize{.p = 0.8},
                               RandomAutocontrast{.p = 0.8},
                               RandomAdjustSharpness{.factor = 2.5, .p = 0.8},
                               RandomAdjustSharpness{.factor = 0, .p = 1}};
  for (const Operation& operation : colours) {
    for (const auto& [height, width] : kSizes) {
      for (const std::uint32_t channels : {1U, 3U}) {
        CAPTURE(operation.name(), height, width, channels);
        // After a blend with grey, levels and contrast have something to stretch.
        compare_pixels(spec_of(height, width, channels), {{ColorJitter{.contrast = Range{0.3, 0.5}},
                                                           RandomHorizontalFlip{}, operation}});
      }
    }
  }
}

TEST_CASE("pictures are rotated and sheared on the device as in a Loader", "[device][augment]") {
  const FakeMachine machine;
  const std::array<double, 2> center{3.5, 9};
  for (const auto interpolation : {Interpolation::kNearest, Interpolation::kBilinear}) {
    for (const auto& [height, width] : kSizes) {
      for (const std::uint32_t channels : {1U, 3U, 4U}) {
        const TensorSpec stored = spec_of(height, width, channels);
        CAPTURE(interpolation, height, width, channels);
        compare_pixels(stored,
                       {{RandomRotation{
                           .degrees = {-200, 200}, .interpolation = interpolation, .fill = {9}}}});
        compare_pixels(
            stored, {{RandomRotation{
                        .degrees = {15, 80}, .interpolation = interpolation, .center = center}}});
        compare_pixels(stored,
                       {{RandomHorizontalFlip{}, RandomAffine{.degrees = {-30, 30},
                                                              .translate = center_shares(),
                                                              .scale = Range{0.5, 1.7},
                                                              .shear = shears(),
                                                              .interpolation = interpolation,
                                                              .fill = {200}}}});
        compare_pixels(stored, {{RandomAffine{.degrees = {0, 0},
                                              .translate = center_shares(),
                                              .scale = Range{0.3, 2},
                                              .interpolation = interpolation}}});
        compare_pixels(stored, {{RandomAffine{.degrees = {0, 0},
                                              .scale = Range{1e-6, 1e-5},
                                              .shear = shears(),
                                              .interpolation = interpolation}}});
      }
    }
  }
}

TEST_CASE("rotations by quarters only move pixels on the device too", "[device][augment]") {
  const FakeMachine machine;
  for (const double degrees : {0.0, 90.0, 180.0, 270.0, -90.0, 360.0}) {
    for (const TensorSpec& stored : {spec_of(9, 9, 3), spec_of(8, 13, 3)}) {
      CAPTURE(degrees, stored.text());
      compare_pixels(stored, {{RandomRotation{.degrees = {degrees, degrees}, .fill = {1, 2, 3}},
                               RandomVerticalFlip{}}});
    }
  }
}

TEST_CASE("rectangles are erased on the device as in a Loader", "[device][augment]") {
  const FakeMachine machine;
  for (const bool random : {false, true}) {
    for (const auto& [height, width] : kSizes) {
      CAPTURE(random, height, width);
      const RandomErasing pixels{.p = 0.8, .value = {1.5, 300, -4}, .random = random};
      compare_pixels(spec_of(height, width, 3), {{pixels, RandomHorizontalFlip{}, pixels}});
    }
  }
}

TEST_CASE("normalised numbers are erased on the device as in a Loader", "[device][augment]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset =
      Dataset::open(make_dataset(folder.path(), {.spec = spec_of(18, 19, 3)}).folder);
  for (const DevicePath path : kPaths) {
    for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
        for (const bool random : {false, true}) {
          LoaderOptions options = options_for(path);
          const RandomErasing numbers{
              .p = 0.8, .value = {0.25}, .random = random, .after_normalize = true};
          options.transform.augmentation = {
              {RandomResizedCrop{.height = 12, .width = 11}, RandomApply{{numbers}, 0.5}, numbers}};
          options.transform.normalize = kImagenet;
          options.transform.dtype = dtype;
          options.transform.layout = layout;
          CAPTURE(name(path), dtype, layout, random);
          compare(dataset, options, path);
        }
      }
    }
  }
}

TEST_CASE("a long list runs on the device as in a Loader", "[device][augment]") {
  const FakeMachine machine;
  compare_list(
      spec_of(33, 29, 3),
      {{RandomAffine{.degrees = {-20, 20}, .interpolation = Interpolation::kBilinear},
        RandomResizedCrop{.height = 24, .width = 24, .interpolation = Interpolation::kBicubic},
        RandomHorizontalFlip{},
        RandomApply{{ColorJitter{.brightness = Range{0.6, 1.4}, .hue = Range{-0.1, 0.1}}}, 0.8},
        RandomGrayscale{.p = 0.2}, RandomEqualize{}, RandomAutocontrast{},
        RandomRotation{{-45, 45}}, RandomSolarize{.threshold = 128, .p = 0.2},
        RandomErasing{.p = 0.5}, RandomCrop{.height = 24, .width = 24, .padding = {3, 3, 3, 3}}}});
}

TEST_CASE("lists work for one and for four channels on the device", "[device][augment]") {
  const FakeMachine machine;
  for (const std::uint32_t channels : {1U, 4U}) {
    compare_list(spec_of(15, 14, channels),
                 {{RandomResizedCrop{.height = 8, .width = 9}, RandomHorizontalFlip{}}});
  }
}

TEST_CASE("floats are moved by lists on the device too", "[device][augment]") {
  const FakeMachine machine;
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    compare_list(spec_of(13, 12, 3, dtype),
                 {{RandomCrop{.height = 9, .width = 10}, RandomHorizontalFlip{},
                   CenterCrop{.height = 7, .width = 7}}});
  }
}

TEST_CASE("pictures are normalised, cast and reordered after the operations", "[device][augment]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset =
      Dataset::open(make_dataset(folder.path(), {.spec = spec_of(18, 19, 3)}).folder);
  for (const DevicePath path : kPaths) {
    for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
        LoaderOptions options = options_for(path);
        options.transform.augmentation = {
            {RandomResizedCrop{.height = 12, .width = 12}, RandomHorizontalFlip{}}};
        options.transform.normalize = kImagenet;
        options.transform.dtype = dtype;
        options.transform.layout = layout;
        CAPTURE(name(path), dtype, layout);
        compare(dataset, options, path);
      }
    }
  }
}

TEST_CASE("rectangles are drawn in the original picture on the device too", "[device][augment]") {
  const FakeMachine machine;
  compare_list(spec_of(20, 22, 3), {{RandomResizedCrop{.height = 11, .width = 10}}},
               {size_column()}, 64);
}

TEST_CASE("several views, each with its list, are made on the device", "[device][augment]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset =
      Dataset::open(make_dataset(folder.path(), {.spec = spec_of(16, 18, 3)}).folder);
  for (const DevicePath path : kPaths) {
    LoaderOptions options = options_for(path);
    const Augmentation large{{RandomResizedCrop{.height = 14, .width = 14}, RandomVerticalFlip{}}};
    const Augmentation small{{RandomResizedCrop{.height = 5, .width = 7}}};
    options.transform.views = {large, small, {}, large};
    options.transform.dtype = DType::kFloat16;
    CAPTURE(name(path));
    compare(dataset, options, path);
  }
}

TEST_CASE("repeats draw as in a Loader", "[device][augment]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kGather, DevicePath::kResident}) {
    LoaderOptions options = options_for(path);
    options.repeats = 3;
    CAPTURE(name(path));
    options.transform.crop = Crop{5, 4};
    options.transform.flip = true;
    compare(dataset, options, path);
    options.transform = {};
    compare(dataset, options, path);
    options.transform.augmentation = {{RandomResizedCrop{.height = 6, .width = 6},
                                       RandomHorizontalFlip{.p = 0.5, .alternate = true}}};
    compare(dataset, options, path);
  }
}

TEST_CASE("sizes change between epochs on the device as in a Loader", "[device][augment]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset =
      Dataset::open(make_dataset(folder.path(), {.spec = spec_of(16, 18, 3)}).folder);
  for (const DevicePath path : kPaths) {
    for (const bool has_list : {true, false}) {
      LoaderOptions options = options_for(path);
      if (has_list) {
        options.transform.augmentation = {{RandomResizedCrop{.height = 6, .width = 7}}};
      } else {
        options.transform.crop = Crop{6, 7};
      }
      options.transform.max_size = ImageSize{16, 18};
      CAPTURE(name(path), has_list);
      Loader expected(dataset, options);
      DeviceLoader loader(dataset, options, by_path(path));
      const auto set_size = [&](ImageSize size) {
        expected.set_size(size);
        loader.set_size(size);
        CHECK(loader.spec() == expected.spec());
      };
      const auto check_epoch = [&] {
        const bool equal = epoch_of(loader) == epoch_of(expected);
        CHECK(equal);
      };
      check_epoch();
      set_size({16, 18});  // at the beginning of an epoch, with batches ahead
      check_epoch();
      test::Consumer consumer;
      consumer.take(*loader.next());
      (void)expected.next();
      set_size({3, 4});  // from the next one on
      check_epoch();
      check_epoch();
      set_size({9, 5});
      const OrderState begin = expected.state();
      check_epoch();
      loader.resume(begin);
      expected.resume(begin);
      check_epoch();
      CHECK_THROWS_AS(loader.set_size({17, 18}), InvalidArgument);
    }
  }
}

TEST_CASE("draw() of a DeviceLoader is that of a Loader", "[device][augment]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(
      make_dataset(folder.path(), {.columns = {size_column()}, .has_real_sizes = true}).folder);
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kResident}) {
    LoaderOptions options = options_for(path);
    options.repeats = 2;
    options.transform.augmentation = {
        {RandomResizedCrop{.height = 6, .width = 6}, RandomHorizontalFlip{}}};
    const Loader expected(dataset, options);
    const DeviceLoader loader(dataset, options, by_path(path));
    for (std::uint64_t sample = 0; sample < dataset.size(); ++sample) {
      const auto draws = loader.draw(sample, 3, 0, 1);
      const auto wanted = expected.draw(sample, 3, 0, 1);
      REQUIRE(draws.size() == wanted.size());
      for (std::size_t i = 0; i < draws.size(); ++i) {
        CHECK(draws[i].name == wanted[i].name);
        const bool equal = draws[i].value == wanted[i].value;
        CHECK(equal);
      }
    }
    CHECK_THROWS_AS(loader.draw(dataset.size(), 0), InvalidArgument);
    CHECK_THROWS_AS(loader.draw(0, 0, 1), InvalidArgument);
    CHECK_THROWS_AS(loader.draw(0, 0, 0, 2), InvalidArgument);
  }
}

TEST_CASE("operations that the kernels do not have are refused by name", "[device][augment]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);
  const Operation refused[] = {GaussianBlur{}, TrivialAugmentWide{}, RandAugment{}, AutoAugment{}};
  for (const Operation& operation : refused) {
    for (const DevicePath path : {DevicePath::kStaged, DevicePath::kResident}) {
      LoaderOptions options = options_for(path);
      options.transform.augmentation = {{operation}};
      const std::string message =
          test::message_of<Unsupported>([&] { DeviceLoader(dataset, options, by_path(path)); });
      CHECK(message.find(operation.name()) != std::string::npos);
      CHECK(message.find("GPU") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace precache
