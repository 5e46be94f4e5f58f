// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::MadeDataset;
using test::TempFolder;

constexpr std::uint32_t kSide = 20;

/// A dataset whose masks are the first channels of its images. With operations that choose pixels
/// by nearest neighbour, they have to stay that.
MadeDataset make_with_masks(const TempFolder& folder, std::uint32_t width = kSide) {
  MadeDataset made = test::make_dataset(folder.path(), {.spec = test::spec_of(kSide, width, 3)});
  SplitEntry& split = made.manifest.splits.begin()->second;
  split.columns = {{"mask", ValueType::kUint8, {kSide, width}, {}}};
  for (ShardEntry& shard : split.shards) {
    const Column image = shard.columns->image;
    shard.columns.edit().named = {{image.base, image.stride, "uint8"}};
  }
  made.write_manifest();
  return made;
}

LoaderOptions options_with(const Augmentation& list) {
  LoaderOptions options;
  options.batch_size = 5;
  options.seed = 3;
  options.threads = 2;
  options.order.shuffle = Shuffle::kFull;
  options.last_batch = LastBatch::kKeep;
  options.transform.augmentation = list;
  options.transform.layout = Layout::kChw;
  options.columns = {"mask"};
  return options;
}

using Masks = std::vector<std::vector<std::uint8_t>>;

Masks masks_of(const Batch& batch) {
  Masks masks;
  const auto rows = batch.column<std::uint8_t>("mask");
  for (std::size_t i = 0; i < rows.size(); ++i) masks.emplace_back(rows[i].begin(), rows[i].end());
  return masks;
}

/// The masks of some epochs.
Masks all_masks(const Dataset& dataset, const LoaderOptions& options, int epochs = 3) {
  Loader loader(dataset, options);
  Masks masks;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    while (const auto batch = loader.next()) {
      for (auto& mask : masks_of(*batch)) masks.push_back(std::move(mask));
    }
  }
  return masks;
}

constexpr auto kNearest = Interpolation::kNearest;

const std::vector<Augmentation> kGeometry{
    {{RandomResizedCrop{.height = 11, .width = 13, .interpolation = kNearest}}},
    {{Resize{.height = 31, .interpolation = kNearest}}},
    {{Resize{.height = 9, .width = 27, .interpolation = kNearest}}},
    {{CenterCrop{12, 15}}},
    {{CenterCrop{25, 22}}},
    {{RandomCrop{.height = 14, .width = 9}}},
    {{RandomCrop{.height = 20, .width = 20, .padding = {4, 3, 2, 1}, .fill = {77}}}},
    {{RandomCrop{.height = 20,
                 .width = 20,
                 .padding = {4, 4, 4, 4},
                 .padding_mode = PaddingMode::kReflect}}},
    {{RandomCrop{.height = 26, .width = 28, .pad_if_needed = true}}},
    {{RandomHorizontalFlip{}, RandomVerticalFlip{}}},
    {{RandomHorizontalFlip{.alternate = true}}},
    {{RandomQuarterTurn{}}},
    {{RandomRotation{.degrees = {-70, 70}, .fill = {9}}}},
    {{RandomAffine{.degrees = {-30, 30},
                   .translate = std::array{0.2, 0.1},
                   .scale = Range{0.7, 1.4},
                   .shear = std::array{-9.0, 9.0, -5.0, 5.0},
                   .fill = {255}}}},
    {{RandomApply{{RandomHorizontalFlip{1.0}, RandomRotation{.degrees = {10, 40}}}, 0.5},
      RandomCrop{.height = 13, .width = 13}}},
};

TEST_CASE("masks move as their images", "[reader][augment][columns]") {
  const TempFolder folder;
  (void)make_with_masks(folder);
  const Dataset dataset = Dataset::open(folder.path());
  for (const Augmentation& list : kGeometry) {
    CAPTURE(list.operations.front().name());
    for (const std::uint32_t repeats : {1U, 3U}) {
      LoaderOptions options = options_with(list);
      options.repeats = repeats;
      Loader loader(dataset, options);
      const TensorSpec& spec = loader.spec();
      CHECK(loader.columns()[0].shape == std::vector{spec.height, spec.width});
      for (int epoch = 0; epoch < 3; ++epoch) {
        while (const auto batch = loader.next()) {
          const auto masks = batch->column<std::uint8_t>("mask");
          for (std::size_t i = 0; i < batch->size(); ++i) {
            REQUIRE(masks[i].size() == std::size_t{spec.height} * spec.width);
            REQUIRE(
                std::ranges::equal(masks[i], batch->as<std::uint8_t>()[i].first(masks[i].size())));
          }
        }
      }
    }
  }
}

TEST_CASE("the values of masks do not change", "[reader][augment][columns]") {
  const TempFolder folder;
  (void)make_with_masks(folder);
  const Dataset dataset = Dataset::open(folder.path());
  const RandomResizedCrop crop{.height = 15, .width = 15};  // bilinear
  const RandomRotation rotation{.degrees = {-20, 20}, .interpolation = Interpolation::kBilinear};
  const Masks plain = all_masks(dataset, options_with({{crop, rotation, RandomHorizontalFlip{}}}));
  CHECK(std::set(plain.begin(), plain.end()).size() == plain.size());
  const ColorJitter jitter{.brightness = Range{0.5, 1.5}, .hue = Range{-0.1, 0.1}};
  LoaderOptions options = options_with({{
      RandomInvert{1.0},
      crop,
      jitter,
      RandomApply{{GaussianBlur{}, RandomGrayscale{1.0}}, 0.5},
      rotation,
      RandomApply{{RandomSolarize{}, RandomEqualize{}}, 1.0},
      RandomErasing{.p = 1.0},
      RandomHorizontalFlip{},
      RandomErasing{.p = 1.0, .random = true, .after_normalize = true},
  }});
  options.transform.normalize = Normalization{{0.4F, 0.5F, 0.6F}, {0.2F, 0.3F, 0.4F}};
  CHECK(all_masks(dataset, options) == plain);
  // Colours alone: the masks as they are stored.
  const Masks stored = all_masks(dataset, options_with({}));
  CHECK(all_masks(dataset, options_with({{jitter, RandomApply{{RandomInvert{1.0}}, 1.0}}})) ==
        stored);
}

TEST_CASE("masks take the geometric changes of policies", "[reader][augment][columns]") {
  const TempFolder folder;
  (void)make_with_masks(folder);
  const Dataset dataset = Dataset::open(folder.path());
  const std::set<std::string> moving{"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"};
  std::size_t moved = 0;
  std::size_t coloured = 0;
  Loader loader(dataset, options_with({{TrivialAugmentWide{}}}));
  for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
    while (const auto batch = loader.next()) {
      const Masks masks = masks_of(*batch);
      for (std::size_t i = 0; i < batch->size(); ++i) {
        const std::uint64_t sample = batch->samples()[i];
        const auto draw = std::get<std::vector<DrawnValue>>(loader.draw(sample, epoch)[0].value);
        const Sample stored = dataset[sample];
        const bool moves = moving.contains(std::get<std::string>(draw[0]));
        ++(moves ? moved : coloured);
        const auto image = moves ? std::as_bytes(batch->as<std::uint8_t>()[i]) : stored.bytes();
        REQUIRE(test::same_bytes(std::as_bytes(std::span(masks[i])), image.first(masks[i].size())));
      }
    }
  }
  CHECK(moved > 20);
  CHECK(coloured > 20);
  CHECK_NOTHROW(all_masks(dataset, options_with({{RandAugment{}, AutoAugment{}}})));
}

TEST_CASE("masks have the sizes of their epochs", "[reader][augment][columns]") {
  const TempFolder folder;
  (void)make_with_masks(folder);
  LoaderOptions options =
      options_with({{RandomResizedCrop{.height = 8, .width = 8, .interpolation = kNearest}}});
  options.transform.max_size = ImageSize{16, 18};
  Loader loader(Dataset::open(folder.path()), options);
  const std::vector<ImageSize> sizes{{8, 8}, {16, 18}, {5, 7}};
  for (const ImageSize& size : sizes) {
    CHECK(loader.columns()[0].shape == std::vector{size.height, size.width});
    bool is_set = false;
    while (const auto batch = loader.next()) {
      CHECK(batch->columns()[0].shape == std::vector{size.height, size.width});
      const Masks masks = masks_of(*batch);
      for (std::size_t i = 0; i < batch->size(); ++i) {
        REQUIRE(std::ranges::equal(masks[i], batch->as<std::uint8_t>()[i].first(masks[i].size())));
      }
      if (!std::exchange(is_set, true)) {  // for the next epoch
        loader.set_size(size == sizes[0] ? sizes[1] : sizes[2]);
      }
    }
  }
}

TEST_CASE("a crop of the whole image can become smaller with its mask",
          "[reader][augment][columns]") {
  const TempFolder folder;
  (void)make_with_masks(folder);
  LoaderOptions options = options_with({});
  options.transform.crop = Crop{kSide, kSide, CropPosition::kCenter};
  Loader loader(Dataset::open(folder.path()), options);
  loader.set_size({8, 6});
  CHECK(loader.columns()[0].shape == std::vector<std::uint32_t>{8, 6});
  const auto batch = loader.next();
  REQUIRE(batch);
  const Masks masks = masks_of(*batch);
  for (std::size_t i = 0; i < batch->size(); ++i) {
    CHECK(std::ranges::equal(masks[i], batch->as<std::uint8_t>()[i].first(8 * 6)));
  }
}

TEST_CASE("masks can have another fill than their images", "[reader][augment][columns]") {
  const TempFolder folder;
  (void)make_with_masks(folder);
  const Dataset dataset = Dataset::open(folder.path());
  const std::vector<Augmentation> lists{
      {{RandomCrop{.height = 20, .width = 20, .padding = {9, 9, 9, 9}, .fill = {1, 2, 3}}}},
      {{CenterCrop{30, 24}}},
      {{RandomRotation{.degrees = {20, 70}, .fill = {1, 2, 3}}}},
      {{RandomAffine{.translate = std::array{0.5, 0.5}, .fill = {1, 2, 3}}}},
      {{TrivialAugmentWide{.fill = {1, 2, 3}}}},
  };
  for (const Augmentation& list : lists) {
    CAPTURE(list.operations.front().name());
    // The stored masks have all values, so those of one epoch are compared between two fills.
    Masks with[2];
    for (const int i : {0, 1}) {
      LoaderOptions options = options_with(list);
      options.transform.mask_fill = static_cast<std::uint8_t>(i == 0 ? 0 : 255);
      with[i] = all_masks(dataset, options);
    }
    std::size_t filled = 0;
    for (std::size_t mask = 0; mask < with[0].size(); ++mask) {
      for (std::size_t pixel = 0; pixel < with[0][mask].size(); ++pixel) {
        const int a = with[0][mask][pixel];
        const int b = with[1][mask][pixel];
        filled += a != b;
        REQUIRE((a == b || (a == 0 && b == 255)));
      }
    }
    CHECK(filled > 100);
  }
}

TEST_CASE("masks that cannot follow their images are refused", "[reader][augment][columns]") {
  const TempFolder folder;
  MadeDataset made = make_with_masks(folder);
  const auto message = [&](const BatchTransform& transform) {
    LoaderOptions options = options_with({});
    options.transform = transform;
    return test::message_of<InvalidArgument>(
        [&] { Loader(Dataset::open(folder.path()), options); });
  };
  const Augmentation flip{{RandomHorizontalFlip{}}};
  const std::string views = message({.views = {flip, flip}});
  CHECK(views.find("the mask 'mask', but `views` makes 2 images") != std::string::npos);
  LoaderOptions one_view = options_with({});
  one_view.transform.views = {flip};
  CHECK_NOTHROW(Loader(Dataset::open(folder.path()), one_view));
  const std::string fill =
      message({.augmentation = {{RandomRotation{.degrees = {0, 9}, .fill = {1, 2, 3}}}}});
  CHECK(fill.find("RandomRotation: `fill` must have one value") != std::string::npos);
  made.manifest.splits.begin()->second.columns.back().shape = {10, 40};
  made.write_manifest();
  CHECK(message({.augmentation = flip}).find("a mask of 10x40") != std::string::npos);
  // Colours do not move pixels.
  LoaderOptions options = options_with({{RandomInvert{}}});
  Loader loader(Dataset::open(folder.path()), options);
  CHECK(loader.columns()[0].shape == std::vector<std::uint32_t>{10, 40});
}

}  // namespace
}  // namespace precache
