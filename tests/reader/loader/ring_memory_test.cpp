// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/ring_memory.hpp"

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::contains;

/// Options whose batches take terabytes when images have 65,535 pixels a side.
LoaderOptions options_of(std::vector<Operation> operations) {
  LoaderOptions options;
  options.batch_size = 1024;
  options.last_batch = LastBatch::kPad;
  options.order.shuffle = Shuffle::kFull;
  options.threads = 2;
  options.transform.augmentation.operations = std::move(operations);
  return options;
}

TEST_CASE("images that memory cannot hold are refused by the operation that makes them",
          "[reader][loader]") {
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  constexpr std::uint32_t kSide = 65'535;
  const RandomResizedCrop crop{.height = kSide, .width = kSide};
  const auto refused = [&](const LoaderOptions& options, const std::string& name) {
    CHECK_THROWS_WITH(Loader(dataset, options), contains(name) && contains("of memory"));
    CHECK_THROWS_AS(Loader(dataset, options), InvalidArgument);
  };
  refused(options_of({crop}), "RandomResizedCrop");
  refused(options_of({crop, RandomHorizontalFlip()}), "RandomResizedCrop");

  LoaderOptions views = options_of({});
  views.transform.views = {{{CenterCrop{4, 4}}}, {{crop}}};
  refused(views, "RandomResizedCrop");

  LoaderOptions larger_later = options_of({RandomResizedCrop{.height = 4, .width = 4}});
  larger_later.transform.max_size = ImageSize{kSide, kSide};
  refused(larger_later, "max_size");

  // Small results of images that only the threads have to hold.
  LoaderOptions between = options_of({Resize{.height = kSide, .width = kSide}, CenterCrop{4, 4}});
  between.threads = 256;
  refused(between, "Resize makes images of 65535x65535");
}

TEST_CASE("batches of unchanged tensors may be larger than memory", "[reader][loader]") {
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  LoaderOptions options;
  options.batch_size = 1'000'000'000;
  options.last_batch = LastBatch::kKeep;
  options.prefetch = 1000;
  Loader loader(dataset, options);
  const auto batch = loader.next();
  REQUIRE(batch);
  CHECK(batch->size() == dataset.size());
}

}  // namespace
}  // namespace precache
