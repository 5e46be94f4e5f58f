// SPDX-License-Identifier: Apache-2.0
// Shards that change while they are read.
#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/threads.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::kFormats;
using test::MadeDataset;
using test::make_dataset;
using test::same_bytes;
using test::spec_of;
using test::TempFolder;

constexpr std::uint64_t kPage = 4096;

MadeDataset make_large(const std::filesystem::path& folder, Format format = Format::kTar) {
  return make_dataset(folder,
                      {.format = format, .spec = spec_of(40, 40, 3), .shards = {48, 48, 48}});
}

LoaderOptions options_of(Shuffle shuffle, unsigned threads = 2) {
  LoaderOptions options;
  options.order.shuffle = shuffle;
  options.batch_size = 8;
  options.threads = threads;
  options.prefetch = 2;
  return options;
}

std::uint64_t sum_of(std::span<const std::byte> bytes) {
  return std::accumulate(
      bytes.begin(), bytes.end(), std::uint64_t{0},
      [](std::uint64_t sum, std::byte byte) { return sum + std::uint64_t(byte); });
}

bool is_right(const Batch& batch, const MadeDataset& made) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!same_bytes(batch[i], made.samples[batch.samples()[i]].tensor)) return false;
  }
  return true;
}

/// The sizes that shards are truncated to: half, within the last page, nothing.
std::vector<std::uint64_t> cuts_of(const std::filesystem::path& shard) {
  const std::uint64_t bytes = std::filesystem::file_size(shard);
  return {bytes / 2, (bytes - 1) / kPage * kPage + 1, bytes - 1, 0};
}

/// Takes batches, which must be right, until an error; this must happen before the end.
std::string refusal(Loader& loader, const MadeDataset& made, int most_epochs = 2) {
  return test::message_of<CorruptData>([&] {
    for (int epoch = 0; epoch < most_epochs;) {
      const auto batch = loader.next();
      if (!batch) ++epoch;
      // For a view, check() counts, because it is returned before its pages are read.
      if (batch && !batch->is_view()) CHECK(is_right(*batch, made));
      if (batch) batch->check();
    }
  });
}

TEST_CASE("a loader refuses a shard that was truncated meanwhile", "[reader][loader][fault]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kFull}) {
      for (std::size_t cut = 0; cut < 4; ++cut) {
        for (const bool flip : {false, true}) {
          const MadeDataset made = make_large(folder.path(), format);
          LoaderOptions options = options_of(shuffle);
          Loader plain(Dataset::open(made.folder), options);
          options.transform.dtype = DType::kFloat16;
          options.transform.flip = flip;
          Loader cast(Dataset::open(made.folder), options);
          REQUIRE(plain.next());
          REQUIRE(cast.next());
          const std::uint64_t bytes = cuts_of(made.shards[1])[cut];
          CAPTURE(name(format), name(shuffle), bytes);
          test::cut_file(made.shards[1], bytes);
          for (int i = 0; i < 2; ++i) {
            CHECK_THAT(refusal(plain, made), test::contains(made.shards[1].filename().string()));
          }
          CHECK_THAT(test::message_of<CorruptData>([&] {
                       for (int i = 0; i < 40; ++i) (void)cast.next();
                     }),
                     test::contains(made.shards[1].filename().string()));
        }
      }
    }
  }
}

TEST_CASE("views of a truncated shard stay readable, and check() throws", "[reader][fault]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    for (std::size_t cut = 0; cut < 4; ++cut) {
      const MadeDataset made = make_large(folder.path(), format);
      const Dataset dataset = Dataset::open(made.folder);
      const Sample sample = dataset[47];
      const Rows rows = dataset.rows(0, 48);
      LoaderOptions options = options_of(Shuffle::kNone);
      options.batch_size = 48;
      Loader loader(dataset, options);
      Batch batch = *loader.next();
      Batch own = std::move(batch);
      std::byte* const writable = own.make_writable();
      loader.set_epoch(1);
      batch = *loader.next();
      REQUIRE(batch.is_view());
      REQUIRE(batch.data() != writable);
      sample.lease().check();
      rows.lease().check();
      batch.check();
      const std::uint64_t bytes = cuts_of(made.shards[0])[cut];
      CAPTURE(name(format), bytes);
      test::cut_file(made.shards[0], bytes);
      std::uint64_t sum = sum_of(sample.bytes());
      for (std::size_t i = 0; i < 48; ++i) sum += sum_of(rows[i]) + sum_of(batch[i]);
      for (std::size_t i = 0; i < 48; ++i) writable[i * own.stride_bytes()] = std::byte{1};
      CHECK(sum != 1);
      CHECK_THROWS_AS(sample.lease().check(), CorruptData);
      CHECK_THROWS_AS(rows.lease().check(), CorruptData);
      CHECK_THROWS_AS(batch.check(), CorruptData);
      CHECK_THROWS_AS(own.check(), CorruptData);
      CHECK_THROWS_AS(sample.key(), CorruptData);
      for (const std::uint64_t i : {0, 20, 47}) CHECK_THROWS_AS(dataset[i], CorruptData);
      CHECK_THROWS_AS(dataset.rows(0, 3), CorruptData);
      CHECK(same_bytes(test::bytes_of(dataset, 48), made.samples[48].tensor));  // another shard
      CHECK_THROWS_AS(Dataset::open(made.folder)[0], CorruptData);
      (void)refusal(loader, made);
    }
  }
}

TEST_CASE("the loader throws if zeros were read from an earlier view", "[reader][loader][fault]") {
  const TempFolder folder;
  for (const std::size_t cut : {0U, 2U}) {  // half of the file, and one byte, which causes no fault
    const MadeDataset made = make_large(folder.path(), Format::kTar);
    LoaderOptions options = options_of(Shuffle::kNone, 1);
    options.batch_size = 48;
    options.prefetch = 1;
    Loader loader(Dataset::open(made.folder), options);
    auto batch = loader.next();
    REQUIRE(batch->is_view());
    test::cut_file(made.shards[0], cuts_of(made.shards[0])[cut]);
    for (std::size_t i = 0; i < batch->size(); ++i) (void)sum_of((*batch)[i]);
    batch.reset();
    for (int i = 0; i < 2; ++i) {  // the next batches are of another shard
      CHECK_THAT(test::message_of<CorruptData>([&] { (void)loader.next(); }),
                 test::contains(made.shards[0].filename().string()));
    }
  }
}

TEST_CASE("a fault is remembered even if the file is restored", "[reader][fault]") {
  const TempFolder folder;
  const MadeDataset made = make_large(folder.path());
  const auto whole = test::read_text(made.shards[0]);
  const Dataset dataset = Dataset::open(made.folder);
  const Rows rows = dataset.rows(0, 48);
  test::cut_file(made.shards[0], 0);
  CHECK(sum_of(rows[40]) == 0);
  test::write_text(made.shards[0], whole);
  CHECK_THROWS_AS(rows.lease().check(), CorruptData);
  CHECK_THROWS_AS(dataset[0], CorruptData);
}

TEST_CASE("a shard that is deleted or replaced by rename keeps its old data", "[reader][fault]") {
  const TempFolder folder;
  for (const bool replaced : {false, true}) {
    for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kFull}) {
      const MadeDataset made = make_large(folder.path());
      const Dataset dataset = Dataset::open(made.folder);
      for (const std::uint64_t i : {0, 48, 96}) (void)dataset[i];  // all are mapped
      const Rows rows = dataset.rows(48, 48);
      Loader loader(dataset, options_of(shuffle));
      REQUIRE(loader.next());
      if (replaced) {
        const Bytes other(std::filesystem::file_size(made.shards[1]), std::byte{1});
        test::write_bytes(folder / "other", other);
        std::filesystem::rename(folder / "other", made.shards[1]);
      } else {
        std::filesystem::remove(made.shards[1]);
      }
      CAPTURE(replaced, name(shuffle));
      for (int epoch = 0; epoch < 2; ++epoch) {
        while (const auto batch = loader.next()) {
          CHECK(is_right(*batch, made));
          batch->check();
        }
      }
      for (std::uint64_t i = 48; i < 96; ++i) {
        CHECK(same_bytes(test::bytes_of(dataset, i), made.samples[i].tensor));
        CHECK(same_bytes(rows[i - 48], made.samples[i].tensor));
        CHECK(dataset[i].key() == made.samples[i].name.key);
      }
      CHECK_NOTHROW(rows.lease().check());
    }
  }
}

TEST_CASE("a shard that is written to in place is refused", "[reader][loader][fault]") {
  const TempFolder folder;
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kFull}) {
    MadeDataset made = make_large(folder.path());
    const Dataset dataset = Dataset::open(made.folder);
    const Sample sample = dataset[10];
    const Rows rows = dataset.rows(0, 9);
    Loader loader(dataset, options_of(shuffle));
    const Batch batch = *loader.next();
    test::let_time_pass();
    test::flip_byte(made.shards[0], made.entries()[0].columns->image.base + 5);
    CAPTURE(name(shuffle));
    CHECK_THROWS_AS(sample.lease().check(), CorruptData);
    CHECK_THROWS_AS(rows.lease().check(), CorruptData);
    if (batch.is_view()) CHECK_THROWS_AS(batch.check(), CorruptData);
    if (!batch.is_view()) CHECK_NOTHROW(batch.check());  // copied before the change
    CHECK_THROWS_AS(dataset[0], CorruptData);
    CHECK_THROWS_AS(dataset.rows(0, 1), CorruptData);
    CHECK_THAT(refusal(loader, made),
               test::contains(made.shards[0].filename().string()) && test::contains("written to"));
  }
}

TEST_CASE("a view that was prepared ahead is checked when it is returned",
          "[reader][loader][fault]") {
  const TempFolder folder;
  const MadeDataset made = make_large(folder.path());
  Loader loader(Dataset::open(made.folder), options_of(Shuffle::kNone, 1));
  REQUIRE(loader.next());
  ::usleep(50'000);  // the next ones are ready
  test::cut_file(made.shards[0], kPage);
  CHECK_THROWS_AS(loader.next(), CorruptData);
  CHECK(loader.state().position == 8);
  CHECK_THROWS_AS(loader.next(), CorruptData);
  CHECK(loader.state().position == 8);
}

TEST_CASE("a shard that was replaced while it was not mapped is refused", "[reader][fault]") {
  const TempFolder folder;
  const MadeDataset made = make_large(folder.path());
  OpenOptions options;
  options.max_open_shards = 1;
  const Dataset dataset = Dataset::open(made.folder, {}, options);
  CHECK(dataset[0].label() == made.samples[0].name.label);
  (void)dataset[48];  // evicts the first shard
  std::filesystem::copy_file(made.shards[0], folder / "copy");
  std::filesystem::rename(folder / "copy", made.shards[0]);
  CHECK_THAT(
      test::message_of<CorruptData>([&] { (void)dataset[0]; }),
      test::contains(made.shards[0].filename().string()) && test::contains("was replaced since"));
  CHECK_NOTHROW(dataset[48]);
  CHECK_NOTHROW(dataset[100]);
  std::filesystem::remove(made.shards[1]);
  CHECK_THROWS_AS(dataset[48], IoError);
}

TEST_CASE("a scanned shard that is replaced before it is mapped is refused", "[reader][fault]") {
  const TempFolder folder;
  const MadeDataset made = test::make_dataset(folder.path(), {.shards = {5, 5}});
  std::filesystem::remove(folder / kManifestName);
  const Dataset dataset = Dataset::open(made.shards[0]);
  std::filesystem::rename(made.shards[1], made.shards[0]);  // of the same size
  CHECK_THROWS_AS(dataset[0], CorruptData);
}

TEST_CASE("verify_on_read finds a flipped byte", "[reader][loader][fault]") {
  const TempFolder folder;
  for (const Format format : {Format::kTfrecord, Format::kTar}) {
    MadeDataset made = make_large(folder.path(), format);
    const ShardColumns& columns = *made.entries()[1].columns;
    // In a tensor of a TFRecord; in the header of a tar entry, the only part with a checksum.
    const auto& column = format == Format::kTar ? columns.key : columns.image;
    test::flip_byte(made.shards[1], column.base + 20 * column.stride + 30);
    OpenOptions options;
    options.verify_on_read = true;
    const Dataset strict = Dataset::open(made.folder, {}, options);
    const Dataset relaxed = Dataset::open(made.folder);
    CAPTURE(name(format));
    for (const std::uint64_t i : {0, 67, 69, 143}) CHECK_NOTHROW(strict[i]);
    CHECK_THAT(test::message_of<CorruptData>([&] { (void)strict[68]; }),
               test::contains(made.shards[1].filename().string()) && test::contains("20"));
    CHECK_NOTHROW(relaxed[68]);
    CHECK_THROWS_AS(strict.rows(48, 48), CorruptData);
    CHECK_NOTHROW(strict.rows(69, 5));
    CHECK_NOTHROW(relaxed.rows(48, 48));
    for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kFull}) {
      Loader strict_loader(strict, options_of(shuffle));
      CHECK_THROWS_AS(([&] {
                        while (strict_loader.next()) continue;
                      }()),
                      CorruptData);
      CHECK_THROWS_AS(strict_loader.next(), CorruptData);
      if (shuffle == Shuffle::kNone) CHECK(strict_loader.state().position == 64);
      Loader relaxed_loader(relaxed, options_of(shuffle));
      CHECK_NOTHROW(([&] {
        while (relaxed_loader.next()) continue;
      }()));
    }
  }
}

TEST_CASE("many threads may read a shard that is truncated meanwhile",
          "[reader][fault][concurrency]") {
  const TempFolder folder;
  for (int round = 0; round < 5; ++round) {
    const MadeDataset made = make_large(folder.path());
    const Dataset dataset = Dataset::open(made.folder);
    (void)dataset[0];
    std::vector<int> refused(4);
    test::on_threads(5, [&](std::size_t thread) {
      if (thread == 4) {
        ::usleep(2000);
        return test::cut_file(made.shards[0], 0);
      }
      for (std::uint64_t i = 0; refused[thread] < 100; i = (i + 7) % 48) {
        try {
          const Sample sample = dataset[i];
          (void)sum_of(sample.bytes());
          sample.lease().check();
        } catch (const CorruptData&) {
          ++refused[thread];
        }
      }
    });
    CHECK(refused == std::vector<int>(4, 100));
  }
}

}  // namespace
}  // namespace precache
