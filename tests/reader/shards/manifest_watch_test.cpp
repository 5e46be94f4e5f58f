// SPDX-License-Identifier: Apache-2.0
// Datasets that are replaced while they are open.
#include <functional>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/threads.hpp"

namespace precache {
namespace {

using test::MadeDataset;
using test::same_bytes;
using test::TempFolder;

/// Writes a dataset like a build does, with the CRCs of its shards.
MadeDataset make_with_crcs(const std::filesystem::path& folder, std::uint64_t seed) {
  MadeDataset made = test::make_dataset(folder, {.shards = {8, 8, 8, 8}, .seed = seed});
  for (std::size_t i = 0; i < made.shards.size(); ++i) {
    made.entries()[i].crc32c = crc32c::extend(0, read_file(made.shards[i]));
  }
  made.write_manifest();
  return made;
}

/// Replaces a dataset in the same order as `build --overwrite`.
void replace(const MadeDataset& made, const MadeDataset& other) {
  std::filesystem::remove(made.folder / kManifestName);
  for (std::size_t i = 0; i < made.shards.size(); ++i) {
    const auto copy = made.folder / "copy";
    std::filesystem::copy_file(other.shards[i], copy);
    std::filesystem::rename(copy, made.shards[i]);
  }
  write_file_atomically(made.folder / kManifestName, other.manifest.to_json());
}

bool is_replaced(const std::function<void()>& call) {
  try {
    call();
  } catch (const CorruptData& error) {
    return error.path().filename() == kManifestName && !error.hint().empty();
  }
  return false;
}

TEST_CASE("threads that read a dataset while it is replaced never get a mixture",
          "[reader][fault][concurrency]") {
  const TempFolder folder;
  const MadeDataset other = make_with_crcs(folder / "other", 7);
  for (int round = 0; round < 4; ++round) {
    const MadeDataset made = make_with_crcs(folder / "out", 0);
    OpenOptions options;
    options.max_open_shards = round % 2 == 0 ? 0 : 1;  // 1: shards are mapped again and again
    const Dataset dataset = Dataset::open(made.folder, {}, options);
    std::vector<int> wrong(4);
    test::on_threads(5, [&](std::size_t thread) {
      if (thread == 4) {
        ::usleep(1000);
        return replace(made, other);
      }
      for (std::uint64_t i = thread, refused = 0; refused < 32; i = (i + 9) % dataset.size()) {
        try {
          const Sample sample = dataset[i];
          wrong[thread] += same_bytes(sample.bytes(), made.samples[i].tensor) ? 0 : 1;
        } catch (const Error&) {  // the dataset or the file was replaced
          ++refused;
        }
      }
    });
    CHECK(wrong == std::vector<int>(4));
    for (std::uint64_t i = 0; i < dataset.size(); ++i) {
      CHECK(is_replaced([&] { (void)dataset[i]; }));
    }
  }
}

TEST_CASE("a new manifest with the same entries for the open shards is accepted",
          "[reader][fault]") {
  const TempFolder folder;
  MadeDataset made = make_with_crcs(folder.path(), 0);
  const Dataset dataset = Dataset::open(made.folder);
  const auto rewrite = [&] {
    test::let_time_pass();
    made.write_manifest();
  };
  CHECK(dataset[0].label() == made.samples[0].name.label);
  made.manifest.splits["val"].shards.push_back({"val-000000.tar", 0, 1024, 0, {}});
  rewrite();
  CHECK_NOTHROW(dataset[8]);  // another shard, so that the manifest is checked
  made.manifest.splits["train"].shards[3].crc32c ^= 1;
  rewrite();
  CHECK(is_replaced([&] { (void)dataset[16]; }));
  CHECK(is_replaced([&] { (void)dataset[0]; }));  // at once, after it was noticed
  made.manifest.splits["train"].shards[3].crc32c ^= 1;
  rewrite();
  CHECK_NOTHROW(dataset[16]);
  test::write_text(made.folder / kManifestName, "{");
  CHECK_THROWS_AS(dataset[24], CorruptData);
}

}  // namespace
}  // namespace precache
