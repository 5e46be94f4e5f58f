// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "formats/bytes/half_float.hpp"
#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/resize.hpp"
#include "tests/support/targets.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::MadeDataset;
using test::make_dataset;
using test::Plane;
using test::same_bytes;
using test::spec_of;
using test::TempFolder;

constexpr std::uint32_t kSide = 20;

MadeDataset make_data(const TempFolder& folder, Layout layout = Layout::kChw,
                      std::uint32_t channels = 3, DType dtype = DType::kUint8) {
  TensorSpec spec = spec_of(kSide, kSide, channels);
  spec.layout = layout;
  spec.dtype = dtype;
  return make_dataset(folder.path() / "data", {.spec = spec, .shards = {9, 8, 7}});
}

LoaderOptions options_with(const Augmentation& list, std::uint64_t batch_size = 5) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.seed = 3;
  options.threads = 2;
  options.order.shuffle = Shuffle::kFull;
  options.last_batch = LastBatch::kKeep;
  options.transform.augmentation = list;
  return options;
}

const DrawnValue& drawn(const std::vector<OperationDraw>& draws, const std::string& name) {
  const auto found =
      std::ranges::find_if(draws, [&](const OperationDraw& draw) { return draw.name == name; });
  REQUIRE(found != draws.end());
  return found->value;
}

bool is_true(const DrawnValue& value) { return std::get<bool>(value); }

std::vector<std::uint32_t> numbers(const DrawnValue& value) {
  std::vector<std::uint32_t> result;
  for (const DrawnValue& part : std::get<std::vector<DrawnValue>>(value)) {
    result.push_back(static_cast<std::uint32_t>(std::get<std::int64_t>(part)));
  }
  return result;
}

/// One channel of a stored tensor.
Plane channel_of(const Bytes& tensor, const TensorSpec& spec, std::uint32_t channel) {
  Plane plane(spec.height, spec.width);
  for (std::uint32_t y = 0; y < spec.height; ++y) {
    for (std::uint32_t x = 0; x < spec.width; ++x) {
      const std::size_t at = spec.layout == Layout::kChw
                                 ? (channel * spec.height + y) * spec.width + x
                                 : (y * spec.width + x) * spec.channels + channel;
      plane.at(y, x) = std::to_integer<std::uint8_t>(tensor[at]);
    }
  }
  return plane;
}

Plane cropped(const Plane& in, const std::vector<std::uint32_t>& rectangle) {
  Plane out(rectangle[2], rectangle[3]);
  for (std::uint32_t y = 0; y < out.height; ++y) {
    for (std::uint32_t x = 0; x < out.width; ++x) {
      out.at(y, x) = in.at(rectangle[0] + y, rectangle[1] + x);
    }
  }
  return out;
}

Plane mirrored(const Plane& in) {
  Plane out = in;
  for (std::uint32_t y = 0; y < in.height; ++y) {
    for (std::uint32_t x = 0; x < in.width; ++x) out.at(y, x) = in.at(y, in.width - 1 - x);
  }
  return out;
}

const Augmentation kTrain{{RandomResizedCrop{.height = 11, .width = 13}, RandomHorizontalFlip{}}};

/// The pixels that kTrain must make of a sample, by its draw.
Bytes expected_pixels(const MadeDataset& made, std::uint64_t sample,
                      const std::vector<OperationDraw>& draws) {
  const TensorSpec& spec = made.manifest.spec;
  Bytes pixels;
  for (std::uint32_t channel = 0; channel < spec.channels; ++channel) {
    Plane plane = channel_of(made.samples[sample].tensor, spec, channel);
    plane = cropped(plane, numbers(drawn(draws, "RandomResizedCrop")));
    plane = test::resized(plane, 11, 13, Interpolation::kBilinear);
    if (is_true(drawn(draws, "RandomHorizontalFlip"))) plane = mirrored(plane);
    for (const std::uint8_t pixel : plane.pixels) pixels.push_back(std::byte{pixel});
  }
  return pixels;
}

TEST_CASE("batches have the pixels of their draws", "[reader][augment][concurrency]") {
  for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
    for (const std::uint32_t channels : {1U, 3U, 4U}) {
      const TempFolder folder;
      const MadeDataset made = make_data(folder, layout, channels);
      LoaderOptions options = options_with(kTrain);
      options.transform.layout = Layout::kChw;
      Loader loader(Dataset::open(made.folder), options);
      CHECK(loader.spec() == spec_of(11, 13, channels));
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        std::size_t count = 0;
        while (const auto batch = loader.next()) {
          for (std::size_t i = 0; i < batch->size(); ++i, ++count) {
            const std::uint64_t sample = batch->samples()[i];
            const auto draws = loader.draw(sample, epoch);
            REQUIRE(same_bytes((*batch)[i], expected_pixels(made, sample, draws)));
          }
        }
        CHECK(count == made.samples.size());
      }
    }
  }
}

TEST_CASE("pixels are normalised after the operations", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  LoaderOptions options = options_with(kTrain);
  Loader pixels(Dataset::open(made.folder), options);
  options.transform.normalize = Normalization{{0.4F, 0.5F, 0.6F}, {0.2F, 0.3F, 0.4F}};
  options.transform.dtype = DType::kFloat16;
  Loader halves(Dataset::open(made.folder), options);
  while (const auto before = pixels.next()) {
    const auto after = halves.next();
    REQUIRE(after);
    const auto in = before->as<std::uint8_t>();
    const auto out = after->as<Float16>();
    for (std::size_t i = 0; i < before->size(); ++i) {
      for (std::size_t at = 0; at < in[i].size(); ++at) {
        const float value = (*options.transform.normalize)(in[i][at], at / (11 * 13));
        REQUIRE(std::bit_cast<std::uint16_t>(out[i][at]) == to_float16(value));
      }
    }
  }
}

TEST_CASE("draws do not depend on threads, batches, ranks or other operations",
          "[reader][augment][concurrency]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  const Dataset dataset = Dataset::open(made.folder);
  std::map<std::uint64_t, Bytes> expected;
  const auto check = [&](const LoaderOptions& options, std::uint64_t epoch) {
    Loader loader(dataset, options);
    loader.set_epoch(epoch);
    while (const auto batch = loader.next()) {
      for (std::size_t i = 0; i < batch->size(); ++i) {
        const Bytes row((*batch)[i].begin(), (*batch)[i].end());
        const auto [found, is_new] = expected.try_emplace(batch->samples()[i], row);
        REQUIRE(found->second == row);
      }
    }
  };
  LoaderOptions options = options_with(kTrain);
  check(options, 1);
  REQUIRE(expected.size() == made.samples.size());
  options.threads = 1;
  options.batch_size = 24;
  check(options, 1);
  options.order.shuffle = Shuffle::kNone;
  options.world_size = 2;
  for (options.rank = 0; options.rank < 2; ++options.rank) check(options, 1);
  // An operation that changes nothing, between and before.
  options = options_with({{RandomVerticalFlip{.p = 0}, kTrain.operations[0],
                           RandomVerticalFlip{.p = 0}, kTrain.operations[1]}});
  check(options, 1);
}

TEST_CASE("a run with augmentation resumes from its state", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  const Dataset dataset = Dataset::open(made.folder);
  Loader whole(dataset, options_with(kTrain));
  static_cast<void>(whole.next());
  static_cast<void>(whole.next());
  const std::string state = whole.state().to_json();
  CHECK_THAT(state, test::contains("\"version\":1"));
  Loader resumed(dataset, options_with(kTrain));
  resumed.resume(OrderState::from_json(state));
  while (const auto batch = whole.next()) {
    const auto same = resumed.next();
    REQUIRE(same);
    REQUIRE(std::ranges::equal(batch->samples(), same->samples()));
    for (std::size_t i = 0; i < batch->size(); ++i) REQUIRE(same_bytes((*batch)[i], (*same)[i]));
  }
  CHECK_FALSE(resumed.next());
}

TEST_CASE("several views of a record come with one batch", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  LoaderOptions options = options_with({});
  const Augmentation small{{RandomResizedCrop{.height = 5, .width = 6, .scale = {0.1, 0.4}}}};
  options.transform.views = {kTrain, small, kTrain, {}};
  Loader loader(Dataset::open(made.folder), options);
  CHECK(loader.views() == 4);
  CHECK(loader.spec() == spec_of(11, 13, 3));
  CHECK(loader.view_spec(1) == spec_of(5, 6, 3));
  CHECK_THROWS_AS(loader.view_spec(4), InvalidArgument);
  std::size_t differing = 0;
  while (const auto batch = loader.next()) {
    REQUIRE(batch->views() == 4);
    REQUIRE(batch->view(0).data() == batch->data());
    for (std::size_t i = 0; i < batch->size(); ++i) {
      const std::uint64_t sample = batch->samples()[i];
      for (const std::size_t view : {0U, 2U}) {
        const auto draws = loader.draw(sample, 0, view);
        REQUIRE(same_bytes(batch->view(view)[i], expected_pixels(made, sample, draws)));
      }
      differing += same_bytes(batch->view(0)[i], batch->view(2)[i]) ? 0 : 1;
      const auto rectangle = numbers(drawn(loader.draw(sample, 0, 1), "RandomResizedCrop"));
      const Plane plane = test::resized(
          cropped(channel_of(made.samples[sample].tensor, made.manifest.spec, 0), rectangle), 5, 6,
          Interpolation::kBilinear);
      REQUIRE(std::memcmp(batch->view(1)[i].data(), plane.pixels.data(), 30) == 0);
      REQUIRE(same_bytes(batch->view(3)[i], made.samples[sample].tensor));
    }
  }
  CHECK(differing > 20);  // of 24: views draw for themselves
}

TEST_CASE("a repeated sample takes neighbouring positions, each with its draw",
          "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  LoaderOptions options = options_with(kTrain, 6);
  options.repeats = 3;
  Loader loader(Dataset::open(made.folder), options);
  CHECK(loader.batches_per_epoch() == 4);  // an epoch keeps its length
  std::set<std::uint64_t> all;
  for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
    std::set<std::uint64_t> seen;
    while (const auto batch = loader.next()) {
      for (std::size_t i = 0; i < batch->size(); ++i) {
        const std::uint64_t sample = batch->samples()[i];
        REQUIRE(batch->repeats()[i] == i % 3);
        REQUIRE(sample == batch->samples()[i / 3 * 3]);
        seen.insert(sample);
        const auto draws = loader.draw(sample, epoch, 0, batch->repeats()[i]);
        REQUIRE(same_bytes((*batch)[i], expected_pixels(made, sample, draws)));
      }
    }
    CHECK(seen.size() == 8);
    all.insert(seen.begin(), seen.end());
  }
  CHECK(all.size() == 24);
  CHECK_THROWS_AS(loader.draw(0, 0, 0, 3), InvalidArgument);
  options.order.shuffle = Shuffle::kNone;
  CHECK_THROWS_WITH(Loader(Dataset::open(made.folder), options), test::contains("`repeats`"));
  options.repeats = 0;
  CHECK_THROWS_WITH(Loader(Dataset::open(made.folder), options), test::contains("`repeats`"));
}

TEST_CASE("repeats of a crop without a list have their own draws", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  LoaderOptions options = options_with({}, 24);
  options.transform.crop = Crop{4, 4, CropPosition::kRandom};
  options.repeats = 2;
  Loader loader(Dataset::open(made.folder), options);
  const auto batch = loader.next();
  REQUIRE(batch);
  int differing = 0;
  for (std::size_t i = 0; i < batch->size(); ++i) {
    const std::uint64_t sample = batch->samples()[i];
    const auto rectangle =
        numbers(drawn(loader.draw(sample, 0, 0, batch->repeats()[i]), "RandomCrop"));
    const Plane plane =
        cropped(channel_of(made.samples[sample].tensor, made.manifest.spec, 0), rectangle);
    REQUIRE(std::memcmp((*batch)[i].data(), plane.pixels.data(), 16) == 0);
    if (i % 2 == 1) differing += same_bytes((*batch)[i], (*batch)[i - 1]) ? 0 : 1;
  }
  CHECK(differing > 8);  // of 12
}

TEST_CASE("alternate flips mirror a sample in every second epoch", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  Loader loader(Dataset::open(made.folder),
                options_with({{RandomHorizontalFlip{.alternate = true}}}));
  int flipped = 0;
  for (std::uint64_t sample = 0; sample < made.samples.size(); ++sample) {
    const auto of = [&](std::uint64_t epoch) {
      return is_true(drawn(loader.draw(sample, epoch), "RandomHorizontalFlip"));
    };
    CHECK(of(0) != of(1));
    CHECK(of(0) == of(2));
    flipped += of(0) ? 1 : 0;
  }
  CHECK(flipped > 2);
  CHECK(flipped < 22);
}

TEST_CASE("set_size() takes effect at the beginning of an epoch", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  LoaderOptions options = options_with(kTrain);
  options.transform.max_size = ImageSize{16, 16};
  Loader loader(Dataset::open(made.folder), options);
  const auto epoch_sizes = [&] {
    std::set<std::pair<std::uint32_t, std::uint32_t>> sizes;
    while (const auto batch = loader.next()) {
      sizes.insert({batch->spec().height, batch->spec().width});
    }
    return sizes;
  };
  using Sizes = std::set<std::pair<std::uint32_t, std::uint32_t>>;
  loader.set_size({16, 16});  // nothing was returned yet
  CHECK(loader.spec() == spec_of(16, 16, 3));
  CHECK(epoch_sizes() == Sizes{{16, 16}});
  const auto first = loader.next();
  REQUIRE(first);
  loader.set_size({8, 9});
  loader.set_size({7, 9});
  CHECK(epoch_sizes() == Sizes{{16, 16}});
  CHECK(epoch_sizes() == Sizes{{7, 9}});
  CHECK(epoch_sizes() == Sizes{{7, 9}});
  static_cast<void>(loader.next());
  CHECK(loader.set_size({3, 3}) == 5);
  CHECK(loader.spec() == spec_of(7, 9, 3));  // of the next batch
  loader.set_epoch(1);
  CHECK(epoch_sizes() == Sizes{{16, 16}});  // as it was
  loader.set_epoch(6);
  CHECK(epoch_sizes() == Sizes{{3, 3}});
  CHECK(loader.set_size({8, 32}, 0, 20) == 20);  // as many pixels as 16x16
  CHECK(epoch_sizes() == Sizes{{3, 3}});
  loader.set_epoch(20);
  CHECK(epoch_sizes() == Sizes{{8, 32}});
  CHECK_THROWS_WITH(loader.set_size({17, 16}), test::contains("16x16"));
  CHECK_THROWS_AS(loader.set_size({0, 16}), InvalidArgument);
  CHECK_THROWS_AS(loader.set_size({9, 9}, 1), InvalidArgument);
  options.transform.max_size = ImageSize{10, 14};
  CHECK_THROWS_WITH(Loader(Dataset::open(made.folder), options), test::contains("`max_size`"));
  options = options_with({{RandomHorizontalFlip{}}});
  Loader fixed(Dataset::open(made.folder), options);
  CHECK_THROWS_WITH(fixed.set_size({8, 8}), test::contains("the image size cannot change"));
}

/// The bytes and the height of each batch, to the end of the epoch.
std::vector<std::pair<std::uint32_t, Bytes>> rest_of_epoch(Loader& loader) {
  std::vector<std::pair<std::uint32_t, Bytes>> batches;
  while (const auto batch = loader.next()) {
    const std::size_t bytes = batch->size() * batch->spec().size_bytes();
    batches.emplace_back(batch->spec().height, Bytes(batch->data(), batch->data() + bytes));
  }
  return batches;
}

TEST_CASE("an epoch has its size and its bytes, whatever was read before it", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  LoaderOptions options = options_with(kTrain);
  options.prefetch = 16;  // two epochs are ahead
  options.transform.sizes = {{0, {8, 20}}, {2, {20, 8}}, {3, {9, 9}}};
  if (GENERATE(false, true)) {
    options.transform.augmentation = {};
    options.transform.crop = Crop{6, 6, CropPosition::kRandom};
    options.transform.flip = true;
  }
  const std::vector<std::uint32_t> heights{8, 8, 20, 9, 9};
  Loader whole(Dataset::open(made.folder), options);
  std::vector<std::vector<std::pair<std::uint32_t, Bytes>>> epochs;
  for (const std::uint32_t height : heights) {
    CHECK(whole.spec().height == height);
    epochs.push_back(rest_of_epoch(whole));
    REQUIRE(epochs.back().size() == 5);
    CHECK(epochs.back()[4].first == height);
  }
  for (const std::uint64_t epoch : {3U, 0U, 2U, 1U, 4U}) {  // jumps
    whole.set_epoch(epoch);
    CHECK(rest_of_epoch(whole) == epochs[epoch]);
  }
  whole.set_epoch(1);
  for (int i = 0; i < 5 + 1 + 2; ++i) static_cast<void>(whole.next());  // into epoch 2
  Loader resumed(Dataset::open(made.folder), options);
  resumed.resume(whole.state());
  CHECK(resumed.spec().height == 20);
  CHECK(rest_of_epoch(resumed) == std::vector(epochs[2].begin() + 2, epochs[2].end()));
  CHECK(rest_of_epoch(resumed) == epochs[3]);
  const std::string crop = options.transform.crop ? "RandomCrop" : "RandomResizedCrop";
  for (const std::uint64_t epoch : {0U, 2U}) {
    const auto here = resumed.draw(5, epoch);
    Loader there(Dataset::open(made.folder), options);
    there.set_epoch(epoch);
    CHECK(numbers(drawn(here, crop)) == numbers(drawn(there.draw(5, epoch), crop)));
    if (options.transform.crop) CHECK(numbers(drawn(here, crop))[2] == heights[epoch]);
  }
  options.transform.sizes.push_back({4, {0, 8}});
  CHECK_THROWS_WITH(Loader(Dataset::open(made.folder), options), test::contains("`sizes`"));
  options.transform.sizes.back().size = {8, 9};
  options.transform.max_size = ImageSize{12, 13};  // less than 8x20
  CHECK_THROWS_WITH(Loader(Dataset::open(made.folder), options), test::contains("`max_size`"));
  options = options_with({{RandomHorizontalFlip{}}});
  options.transform.sizes = {{1, {8, 8}}};
  CHECK_THROWS_WITH(Loader(Dataset::open(made.folder), options),
                    test::contains("the image size cannot change"));
}

TEST_CASE("each view keeps the sizes of its epochs", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  LoaderOptions options = options_with({});
  options.transform.views = {kTrain, kTrain};
  Loader loader(Dataset::open(made.folder), options);
  const auto sizes = [&](std::uint64_t epoch) {
    loader.set_epoch(epoch);
    const auto batch = loader.next();
    REQUIRE(batch);
    return std::pair(batch->view(0).spec().height, batch->view(1).spec().height);
  };
  const std::uint32_t own = loader.view_spec(1).height;
  loader.set_size({4, 4}, 0, 5);
  loader.set_size({5, 5}, 1, 3);
  loader.set_size({6, 6}, 0, 2);
  loader.set_size({7, 7}, 1, 8);
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  CHECK(sizes(1) == Pair{own, own});
  CHECK(sizes(2) == Pair{6, own});
  CHECK(sizes(4) == Pair{6, 5});
  CHECK(sizes(7) == Pair{4, 5});
  CHECK(sizes(9) == Pair{4, 7});
  CHECK(loader.view_spec(1) == spec_of(7, 7, 3));
}

TEST_CASE("the shorthands can be drawn and sized too", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  LoaderOptions options = options_with({});
  options.transform.crop = Crop{12, 14, CropPosition::kRandom};
  options.transform.flip = true;
  Loader loader(Dataset::open(made.folder), options);
  loader.set_size({10, 9});
  while (const auto batch = loader.next()) {
    for (std::size_t i = 0; i < batch->size(); ++i) {
      const std::uint64_t sample = batch->samples()[i];
      const auto draws = loader.draw(sample, 0);
      Plane plane = cropped(channel_of(made.samples[sample].tensor, made.manifest.spec, 0),
                            numbers(drawn(draws, "RandomCrop")));
      if (is_true(drawn(draws, "RandomHorizontalFlip"))) plane = mirrored(plane);
      REQUIRE(std::memcmp((*batch)[i].data(), plane.pixels.data(), 90) == 0);
    }
  }
}

TEST_CASE("operations of RandomApply are made together or not at all", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  const Augmentation list{{RandomApply{{RandomVerticalFlip{.p = 1}, RandomInvert{.p = 1}}, 0.5},
                           RandomVerticalFlip{.p = 1}}};
  Loader loader(Dataset::open(made.folder), options_with(list));
  int applied = 0;
  while (const auto batch = loader.next()) {
    for (std::size_t i = 0; i < batch->size(); ++i) {
      const std::uint64_t sample = batch->samples()[i];
      const auto draws = loader.draw(sample, 0);
      REQUIRE(draws.size() == 4);
      CHECK(draws[3].name == "RandomVerticalFlip#2");
      const bool together = is_true(draws[0].value);
      applied += together ? 1 : 0;
      CHECK(std::holds_alternative<std::monostate>(draws[1].value) != together);
      const Plane plane = channel_of(made.samples[sample].tensor, made.manifest.spec, 0);
      for (std::uint32_t y = 0; y < kSide; ++y) {
        for (std::uint32_t x = 0; x < kSide; ++x) {
          const int pixel = together ? 255 - plane.at(y, x) : plane.at(kSide - 1 - y, x);
          REQUIRE(std::to_integer<int>((*batch)[i][y * kSide + x]) == pixel);
        }
      }
    }
  }
  CHECK(applied > 2);
  CHECK(applied < 22);
}

TEST_CASE("every operation runs on every instruction set, with the same result",
          "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  const Augmentation list{
      {RandomCrop{.height = 24,
                  .width = 22,
                  .padding = {3, 3, 3, 3},
                  .padding_mode = PaddingMode::kReflect},
       RandomRotation{.degrees = {-30, 30}, .interpolation = Interpolation::kBilinear},
       RandomAffine{.degrees = {-9, 9}, .translate = {{0.1, 0.2}}, .scale = Range{0.8, 1.2}},
       ColorJitter{.brightness = Range{0.6, 1.4},
                   .contrast = Range{0.6, 1.4},
                   .saturation = Range{0.6, 1.4},
                   .hue = Range{-0.1, 0.1}},
       RandomHorizontalFlip{},
       RandomGrayscale{},
       GaussianBlur{},
       RandomSolarize{},
       RandomPosterize{},
       RandomEqualize{},
       RandomAutocontrast{},
       RandomInvert{},
       RandomAdjustSharpness{.factor = 2},
       TrivialAugmentWide{},
       RandAugment{},
       AutoAugment{},
       Resize{.height = 16, .width = 16, .interpolation = Interpolation::kBicubic},
       RandomQuarterTurn{},
       CenterCrop{14, 18},
       RandomErasing{.p = 1},
       RandomErasing{.p = 1, .random = true, .after_normalize = true}}};
  LoaderOptions options = options_with(list);
  options.transform.normalize = Normalization{};
  std::vector<Bytes> expected;
  test::on_every_target([&] {
    Loader loader(Dataset::open(made.folder), options);
    std::vector<Bytes> rows;
    while (const auto batch = loader.next()) {
      for (std::size_t i = 0; i < batch->size(); ++i) {
        rows.emplace_back((*batch)[i].begin(), (*batch)[i].end());
      }
    }
    if (expected.empty()) expected = rows;
    REQUIRE(rows.size() == made.samples.size());
    CHECK(rows == expected);
    CHECK(loader.draw(0, 0).size() == list.operations.size() - 2);  // two draw nothing
  });
}

TEST_CASE("floats can be moved, but not resized", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder, Layout::kChw, 3, DType::kFloat16);
  const Dataset dataset = Dataset::open(made.folder);
  Loader loader(dataset, options_with({{RandomCrop{.height = 8, .width = 9},
                                        RandomHorizontalFlip{.p = 1}, CenterCrop{6, 7}}}));
  const auto batch = loader.next();
  REQUIRE(batch);
  for (std::size_t i = 0; i < batch->size(); ++i) {
    const std::uint64_t sample = batch->samples()[i];
    const auto rectangle = numbers(drawn(loader.draw(sample, 0), "RandomCrop"));
    const auto in = reinterpret_cast<const std::uint16_t*>(made.samples[sample].tensor.data());
    std::vector<std::uint16_t> row(6 * 7);
    std::memcpy(row.data(), (*batch)[i].data(), row.size() * 2);
    for (std::uint32_t y = 0; y < 6; ++y) {
      for (std::uint32_t x = 0; x < 7; ++x) {
        const std::size_t column = rectangle[1] + 8 - (x + 1);
        REQUIRE(row[y * 7 + x] == in[(rectangle[0] + 1 + y) * kSide + column]);
      }
    }
  }
  const auto refused = [&](const Operation& operation) {
    return test::message_of<Unsupported>([&] { Loader(dataset, options_with({{operation}})); });
  };
  CHECK_THAT(refused(RandomResizedCrop{.height = 8, .width = 8}),
             test::contains("RandomResizedCrop needs tensors that are stored as uint8"));
  CHECK_THAT(refused(RandomCrop{.height = 8, .width = 8, .padding = {1, 1, 1, 1}}),
             test::contains("RandomCrop"));
  CHECK_THAT(refused(RandomApply{{RandomInvert{}}, 0.5}), test::contains("RandomInvert"));
}

TEST_CASE("invalid lists are refused when the loader is made", "[reader][augment]") {
  const TempFolder folder;
  const MadeDataset made = make_data(folder);
  const Dataset dataset = Dataset::open(made.folder);
  const auto refused = [&](const Augmentation& list) {
    return test::message_of<InvalidArgument>([&] { Loader(dataset, options_with(list)); });
  };
  CHECK_THAT(refused({{RandomResizedCrop{.height = 0, .width = 8}}}),
             test::contains("RandomResizedCrop: `height`"));
  CHECK_THAT(refused({{RandomResizedCrop{.height = 8, .width = 9}, RandomQuarterTurn{}}}),
             test::contains("RandomQuarterTurn needs square images"));
  CHECK_THAT(refused({{RandomApply{{CenterCrop{8, 8}}, 0.5}}}),
             test::contains("must not change the size"));
  CHECK_THAT(refused({{RandomErasing{.after_normalize = true}}}),
             test::contains("needs tensors of floats"));
  CHECK_THAT(refused({{RandomErasing{.after_normalize = true}, RandomInvert{}}}),
             test::contains("RandomInvert must not follow"));
  CHECK_THAT(refused({{RandomRotation{.degrees = {5, -5}}}}),
             test::contains("RandomRotation: `degrees`"));
  CHECK_THAT(refused({{GaussianBlur{.kernel_size = {4, 3}}}}), test::contains("must be odd"));
  CHECK_THAT(refused({{GaussianBlur{.kernel_size = {3, 41}}}}), test::contains("too large"));
  CHECK_THAT(refused({{RandAugment{.magnitude = 31}}}), test::contains("`magnitude`"));
  CHECK_THAT(refused({{TrivialAugmentWide{.num_magnitude_bins = 1}}}), test::contains("bins"));
  CHECK_THAT(refused({{ColorJitter{.hue = Range{-0.6, 0.1}}}}), test::contains("`hue`"));
  CHECK_THAT(refused({{RandomErasing{.value = {1, 2}}}}), test::contains("`value`"));
  LoaderOptions options = options_with(kTrain);
  options.transform.flip = true;
  CHECK_THROWS_WITH(Loader(dataset, options), test::contains("cannot be combined"));
  options = options_with(kTrain);
  options.transform.views = {kTrain};
  CHECK_THROWS_WITH(Loader(dataset, options), test::contains("cannot be combined"));
  options = options_with({});
  options.transform.views = std::vector<Augmentation>(65);
  CHECK_THROWS_WITH(Loader(dataset, options), test::contains("at most 64"));
}

}  // namespace
}  // namespace precache
