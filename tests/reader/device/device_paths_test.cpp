// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "reader/shards/mapped_shard.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::by_path;
using test::epoch_of;
using test::FakeMachine;
using test::make_dataset;
using test::spec_of;

constexpr DevicePath kPaths[] = {DevicePath::kAuto, DevicePath::kStaged, DevicePath::kStrided,
                                 DevicePath::kGather, DevicePath::kResident};
const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

LoaderOptions shuffled(Shuffle shuffle) {
  LoaderOptions options;
  options.batch_size = 4;
  options.order = {shuffle, 2, 2};
  options.seed = 11;
  options.last_batch = LastBatch::kKeep;
  options.threads = 2;
  return options;
}

/// Two epochs of both loaders.
void compare(const Dataset& dataset, const LoaderOptions& options, const DeviceOptions& device) {
  Loader expected(dataset, options);
  DeviceLoader loader(dataset, options, device);
  CHECK(loader.spec() == expected.spec());
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto wanted = epoch_of(expected);
    const bool equal = epoch_of(loader) == wanted;
    CHECK(equal);
    CHECK(wanted.size() == loader.batches_per_epoch());
  }
}

std::vector<BatchTransform> transforms_of(const TensorSpec& stored) {
  std::vector<BatchTransform> all(1);
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      if (dtype == DType::kUint8 && stored.dtype != DType::kUint8) continue;
      BatchTransform transform;
      transform.dtype = dtype;
      transform.layout = layout;
      all.push_back(transform);
      transform.flip = true;
      transform.crop = Crop{5, 4};
      if (stored.dtype == DType::kUint8 && dtype != DType::kUint8) transform.normalize = kImagenet;
      all.push_back(transform);
    }
  }
  return all;
}

TEST_CASE("batches on the device are those of a loader, by every path", "[device]") {
  const FakeMachine machine;
  for (const Format format : test::kFormats) {
    const test::TempFolder folder;
    const Dataset dataset = Dataset::open(make_dataset(folder.path(), {.format = format}).folder);
    for (const DevicePath path : kPaths) {
      for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kBlock, Shuffle::kFull}) {
        if (path == DevicePath::kStrided && shuffle != Shuffle::kNone) continue;
        LoaderOptions options = shuffled(shuffle);
        auto transforms = transforms_of(dataset.spec());
        // All of them for one format; in the others only the positions of rows differ.
        if (format != Format::kTar) transforms.erase(transforms.begin() + 1, transforms.end() - 1);
        for (const BatchTransform& transform : transforms) {
          options.transform = transform;
          CAPTURE(name(format), name(path), name(shuffle), transform.result(dataset.spec()).text(),
                  transform.flip);
          compare(dataset, options, by_path(path));
        }
      }
    }
  }
}

TEST_CASE("tensors of every stored type reach the device", "[device]") {
  const FakeMachine machine;
  for (const DType stored : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      const test::TempFolder folder;
      const Dataset dataset = Dataset::open(
          make_dataset(folder.path(), {.spec = spec_of(8, 6, 3, stored, layout)}).folder);
      for (const DevicePath path : {DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather,
                                    DevicePath::kResident}) {
        LoaderOptions options =
            shuffled(path == DevicePath::kStrided ? Shuffle::kNone : Shuffle::kFull);
        for (const BatchTransform& transform : transforms_of(dataset.spec())) {
          options.transform = transform;
          CAPTURE(dataset.spec().text(), name(path), transform.result(dataset.spec()).text());
          compare(dataset, options, by_path(path));
        }
      }
    }
  }
}

TEST_CASE("ranks, tails and centre crops are those of a Loader", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kAuto, DevicePath::kResident}) {
    for (const LastBatch last_batch : {LastBatch::kDrop, LastBatch::kPad, LastBatch::kKeep}) {
      for (const std::uint64_t rank : {0U, 1U, 2U}) {
        LoaderOptions options = shuffled(Shuffle::kNone);
        options.batch_size = 3;
        options.last_batch = last_batch;
        options.rank = rank;
        options.world_size = 3;
        options.transform.crop = Crop{7, 3, CropPosition::kCenter};
        CAPTURE(name(path), name(last_batch), rank);
        compare(dataset, options, by_path(path));
      }
    }
  }
}

TEST_CASE("epochs have the sizes that a Loader gives them, by every path", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);  // 8x6
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kAuto, DevicePath::kResident}) {
    for (const bool normalizes : {false, true}) {
      LoaderOptions options = shuffled(Shuffle::kFull);
      options.transform.crop = Crop{8, 6};  // a copy, but for its sizes
      if (normalizes) options.transform.normalize = kImagenet;
      options.transform.sizes = {{0, {5, 4}}, {2, {8, 3}}, {3, {8, 6}}};
      CAPTURE(name(path), normalizes);
      Loader expected(dataset, options);
      DeviceLoader loader(dataset, options, by_path(path));
      const auto compare_epoch = [&] {
        CHECK(loader.spec() == expected.spec());
        const bool equal = epoch_of(loader) == epoch_of(expected);
        CHECK(equal);
      };
      for (int epoch = 0; epoch < 4; ++epoch) compare_epoch();
      for (const std::uint64_t epoch : {2U, 0U, 3U}) {
        loader.set_epoch(epoch);
        expected.set_epoch(epoch);
        compare_epoch();
      }
      (void)expected.next();
      {
        auto dropped = loader.next();
        dropped->release(nullptr);
      }
      CHECK(loader.set_size({4, 5}) == expected.set_size({4, 5}));  // the next epoch is ahead
      compare_epoch();
      compare_epoch();
      CHECK(loader.spec() == spec_of(4, 5, 3, normalizes ? DType::kFloat32 : DType::kUint8));
    }
  }
}

TEST_CASE("a size that changes no batch that is ahead drops none", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kResident}) {
    CAPTURE(name(path));
    LoaderOptions options = shuffled(Shuffle::kFull);
    options.transform.crop = Crop{5, 4};
    const DeviceOptions by = by_path(path);
    DeviceLoader loader(dataset, options, by);
    const test::UserStream stream;
    const std::uint64_t batches = 4 * loader.batches_per_epoch();
    for (std::uint64_t i = 0; i < batches; ++i) {
      auto batch = loader.next();
      if (!batch) batch = loader.next();  // the next epoch
      REQUIRE(batch);
      batch->release(stream.get());
      loader.set_size({5, 4}, 0, 0);
      loader.set_size({3, 3}, 0, 7 + i);
    }
    // Every drop would make the batches that are ahead once more.
    const DeviceStats stats = loader.stats();
    CHECK(stats.batches == batches);
    CHECK(stats.staged + stats.resident <= batches + by.device_batches);
    loader.set_epoch(7);
    CHECK(loader.spec() == spec_of(3, 3, 3));
  }
}

TEST_CASE("each batch has the path that it took", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);  // 5, 3, 4
  const auto paths_of = [&](DevicePath path) {
    DeviceLoader loader(dataset, shuffled(Shuffle::kNone), by_path(path));
    std::string paths;
    const test::UserStream stream;
    while (auto batch = loader.next()) {
      paths += fmt::format("{} ", name(batch->path()));
      batch->release(stream.get());
    }
    const DeviceStats stats = loader.stats();
    CHECK(stats.batches == 3);
    CHECK(stats.host.batches >= 3);
    return fmt::format("{}{} {} {}", paths, stats.staged >= 3, stats.strided != 0,
                       stats.gathered != 0);
  };
  // Samples 0-3 are in one shard, 4-7 in two, 8-11 in one.
  CHECK(paths_of(DevicePath::kAuto) == "strided gather strided false true true");
  CHECK(paths_of(DevicePath::kStaged) == "staged staged staged true false false");
  CHECK(paths_of(DevicePath::kStrided) == "strided strided strided false true false");
  CHECK(paths_of(DevicePath::kGather) == "gather gather gather false false true");
  const auto calls = fake_cudart::calls();
  CHECK(calls.at("cudaMemcpy2DAsync") > 0);
  CHECK(calls.at("cudaMemcpyBatchAsync") > 0);
  CHECK(calls.count("cudaLaunchKernel") == 0);  // no transform
}

TEST_CASE("a staged batch is one copy and one launch", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);
  LoaderOptions options = shuffled(Shuffle::kFull);
  options.transform.dtype = DType::kFloat16;
  DeviceLoader loader(dataset, options, by_path(DevicePath::kStaged));
  const test::UserStream stream;
  for (int i = 0; i < 3; ++i) {
    auto batch = loader.next();
    REQUIRE(batch);
    CHECK(reinterpret_cast<std::uintptr_t>(batch->images()) % 256 == 0);
    batch->release(stream.get());
  }
  const DeviceStats stats = loader.stats();
  const auto calls = fake_cudart::calls();
  CHECK(calls.at("cudaMemcpyAsync") == stats.staged);
  CHECK(calls.at("cudaLaunchKernel") == stats.staged);
  CHECK(stats.strided + stats.gathered == 0);
  CHECK(stats.bytes_copied >= stats.staged * 4 * dataset.spec().size_bytes());
}

TEST_CASE("shards whose records are not equal reach the device", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  auto made = make_dataset(folder.path(), {});
  std::filesystem::remove(folder.path() / kManifestName);  // so they are scanned
  const Dataset dataset = Dataset::open(folder.path() / "*.tar");
  for (const DevicePath path : kPaths) {
    CAPTURE(name(path));
    compare(dataset, shuffled(Shuffle::kNone), by_path(path));
  }
}

/// True if a page of the file is in the page cache. Reads nothing.
bool is_cached(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  const Mapping mapping(file, 0, std::filesystem::file_size(path), PROT_READ);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((mapping.bytes().size() + page - 1) / page);
  REQUIRE(::mincore(mapping.bytes().data(), mapping.bytes().size(), pages.data()) == 0);
  return std::ranges::any_of(pages, [](unsigned char flags) { return (flags & 1) != 0; });
}

void drop_from_cache(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  (void)::fdatasync(file.descriptor());
  (void)::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

TEST_CASE("registered shards are not read from the file again", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  test::write_text(folder / "control", std::string(100'000, 'x'));
  drop_from_cache(folder / "control");
  if (is_cached(folder / "control")) {
    WARN("this file system keeps files in memory, so nothing is tested");
    return;
  }
  const auto made = make_dataset(folder.path(), {.spec = spec_of(64, 48, 3), .shards = {60}});
  const Dataset dataset = Dataset::open(folder.path());
  for (const DevicePath path : {DevicePath::kStrided, DevicePath::kGather}) {
    CAPTURE(name(path));
    const LoaderOptions options =
        shuffled(path == DevicePath::kStrided ? Shuffle::kNone : Shuffle::kFull);
    const auto expected = [&] {
      Loader loader(Dataset::open(folder.path()), options);  // unmaps the shards at its end
      return epoch_of(loader);
    }();
    DeviceLoader loader(dataset, options, by_path(path));
    drop_from_cache(made.shards[0]);
    const bool equal = epoch_of(loader) == expected;
    CHECK(equal);
    CHECK_FALSE(is_cached(made.shards[0]));
  }
}

TEST_CASE("the stride of a shard with one record may have any value", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  auto made = make_dataset(folder.path(), {.shards = {1, 5, 1}});
  made.entries()[0].columns.edit().image.stride = 1;
  made.entries()[2].columns.edit().image.stride = std::uint64_t{1} << 40;
  made.write_manifest();
  const Dataset dataset = Dataset::open(folder.path());
  for (const DevicePath path : kPaths) {
    for (const std::uint64_t batch : {1U, 4U}) {
      CAPTURE(name(path), batch);
      LoaderOptions options = shuffled(Shuffle::kNone);
      options.batch_size = batch;
      compare(dataset, options, by_path(path));
    }
  }
}

}  // namespace
}  // namespace precache
