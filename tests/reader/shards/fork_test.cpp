// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::DatasetPlan;
using test::MadeDataset;
using test::make_dataset;
using test::TempFolder;

/// True if `call` returns true in a child process; false if it hangs, and then it is ended.
bool holds_in_child(const std::function<bool()>& call) {
  return test::ends_normally([&] {
    ::alarm(20);
    bool holds = false;
    try {
      holds = call();
    } catch (...) {
    }
    if (!holds) ::_exit(1);
  });
}

bool has_all_samples(const Dataset& dataset, const MadeDataset& made) {
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    const Sample sample = dataset[i];
    if (!std::ranges::equal(sample.bytes(), made.samples[i].tensor)) return false;
  }
  return true;
}

TEST_CASE("a dataset can be read in a child that was forked while a loader runs",
          "[reader][concurrency]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), DatasetPlan{.shards = {5, 5, 5, 5}});
  // One open shard at a time, so that threads are almost always in critical sections.
  OpenOptions one_open;
  one_open.max_open_shards = 1;
  const Dataset dataset = Dataset::open(folder.path(), {}, one_open);
  LoaderOptions options;
  options.batch_size = 3;
  options.order.shuffle = Shuffle::kFull;
  options.threads = 3;
  Loader loader(dataset, options);
  for (int round = 0; round < 50; ++round) {
    const std::optional<Batch> batch = loader.next();
    CHECK(holds_in_child([&] { return has_all_samples(dataset, made); }));
  }
}

TEST_CASE("a loader of the parent refuses to work in a child, and can be destroyed there",
          "[reader][concurrency]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), DatasetPlan{.shards = {20}});
  LoaderOptions options;
  options.batch_size = 4;
  for (int round = 0; round < 20; ++round) {
    auto loader = std::make_unique<Loader>(Dataset::open(folder.path()), options);
    std::optional<Batch> batch = loader->next();
    REQUIRE(batch);
    CHECK(holds_in_child([&] {
      const bool same = std::ranges::equal((*batch)[3], made.samples[3].tensor);
      bool refused = false;
      try {
        (void)loader->next();
      } catch (const InvalidArgument&) {
        refused = true;
      }
      batch.reset();
      loader.reset();
      return same && refused;
    }));
    CHECK(loader->next());  // continues in the parent
  }
}

}  // namespace
}  // namespace precache
