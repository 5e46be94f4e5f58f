// SPDX-License-Identifier: Apache-2.0
#include "precache/tools/verify.hpp"

#include <functional>

#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::contains;
using test::kFormats;
using test::MadeDataset;
using test::TempFolder;

VerifyReport verified(const std::filesystem::path& path, unsigned threads = 1,
                      const std::optional<std::string>& split = {}) {
  VerifyProgress progress;
  return verify({path}, {split, threads}, progress);
}

/// Writes a dataset with the checksums that a build puts into the manifest.
MadeDataset make_dataset(const std::filesystem::path& folder, const test::DatasetPlan& plan) {
  MadeDataset made = test::make_dataset(folder, plan);
  for (std::size_t i = 0; i < made.shards.size(); ++i) {
    made.entries()[i].crc32c = crc32c::value(read_file(made.shards[i]));
  }
  made.write_manifest();
  return made;
}

TEST_CASE("intact datasets have no faults", "[reader][verify]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    for (const DType dtype : {DType::kUint8, DType::kBfloat16}) {
      const auto path = folder / fmt::format("{}-{}", name(format), name(dtype));
      const MadeDataset made = make_dataset(
          path, {.format = format, .spec = test::spec_of(8, 6, 3, dtype), .shards = {5, 1, 0, 9}});
      for (const unsigned threads : {1U, 4U}) {
        const VerifyReport report = verified(path, threads);
        CAPTURE(name(format), name(dtype), threads);
        CHECK(report.faults.empty());
        CHECK(report.unsupported.empty());
        CHECK(report.files == 4);
        CHECK(report.known_files == 4);
        CHECK(report.samples == 15);
      }
      std::filesystem::remove(path / kManifestName);
      const VerifyReport alone = verified(made.shards[3]);
      CHECK(alone.faults.empty());
      CHECK(alone.known_files == 0);
      CHECK(alone.samples == 9);
    }
  }
}

TEST_CASE("the values of named columns are checked", "[reader][verify]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    const auto verify_with = [&](const std::vector<NamedColumn>& columns) {
      const auto path = folder / fmt::format("{}-{}", name(format), columns.back().text());
      const MadeDataset made = make_dataset(
          path,
          {.format = format, .spec = test::spec_of(8, 6, 3), .shards = {9}, .columns = columns});
      std::vector<ShardFault> faults = verified(path).faults;
      std::filesystem::remove(path / kManifestName);
      CHECK(verified(made.shards[0]).faults.empty());  // nothing says what the columns are
      return faults;
    };
    CAPTURE(name(format));
    const NamedColumn mask{"mask", ValueType::kUint8, {8, 6}, {}};
    CHECK(verify_with({{"n", ValueType::kInt64, {3}, {}}, mask}).empty());
    // The values are random.
    for (const auto& [column, telling] : std::vector<std::pair<NamedColumn, const char*>>{
             {{"size", ValueType::kInt32, {2}, {}}, "not positive"},
             {{"tags", ValueType::kUint8, {3}, {"a", "b", "c"}}, "other than 0 and 1"},
             {{"mask", ValueType::kUint8, {6, 8}, {}}, "mask uint8[6,8]"},
             {{"size", ValueType::kInt32, {1}, {}}, "size int32[1]"}}) {
      const auto faults = verify_with({column});
      CAPTURE(column.text());
      REQUIRE(faults.size() == 1);
      CHECK_THAT(faults[0].reason, test::contains(telling));
    }
  }
}

TEST_CASE("with a manifest any flipped byte is found", "[reader][verify][malformed]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    const auto path = folder / std::string(name(format));
    const MadeDataset made =
        make_dataset(path, {.format = format, .spec = test::spec_of(3, 2, 1), .shards = {3}});
    const std::uint64_t bytes = std::filesystem::file_size(made.shards[0]);
    std::uint64_t unseen = 0;
    for (std::uint64_t offset = 0; offset < bytes; ++offset) {
      // Each look at an HDF5 file starts a process, so only some of its bytes are flipped.
      if (format == Format::kHdf5 && offset % 41 != 0) continue;
      test::flip_byte(made.shards[0], offset);
      const VerifyReport report = verified(path);
      unseen += report.faults.empty() ? 1 : 0;
      test::flip_byte(made.shards[0], offset);
    }
    CAPTURE(name(format), bytes);
    CHECK(unseen == 0);
    CHECK(verified(path).faults.empty());
  }
}

/// The only fault of a shard with one flipped byte; restores the byte.
ShardFault fault_of_flip(const std::filesystem::path& path, const std::filesystem::path& shard,
                         std::uint64_t offset) {
  test::flip_byte(shard, offset);
  const VerifyReport report = verified(path);
  test::flip_byte(shard, offset);
  CAPTURE(offset);
  REQUIRE(report.faults.size() == 1);
  CHECK(report.faults[0].file == shard);
  return report.faults[0];
}

TEST_CASE("any flipped byte of a tar or TFRecord is located, and its record named",
          "[reader][verify][malformed]") {
  for (const Format format : {Format::kTar, Format::kTfrecord}) {
    for (const bool has_manifest : {true, false}) {
      for (const std::size_t key_bytes : {0, 300}) {
        if (format == Format::kTfrecord && key_bytes != 0) continue;  // no pax headers there
        const TempFolder folder;
        const MadeDataset made =
            make_dataset(folder.path(), {.format = format,
                                         .spec = test::spec_of(3, 2, 1),
                                         .shards = {2},
                                         .key_prefix = std::string(key_bytes, 'k')});
        const Column image = made.entries()[0].columns->image;
        if (!has_manifest) std::filesystem::remove(folder / kManifestName);
        const auto path = has_manifest ? folder.path() : made.shards[0];
        for (std::uint64_t offset = 0; offset < 2 * image.stride; ++offset) {
          const ShardFault fault = fault_of_flip(path, made.shards[0], offset);
          CAPTURE(name(format), has_manifest, key_bytes, offset, fault.reason);
          const std::uint64_t record = offset / image.stride;
          REQUIRE(fault.offset.value() / image.stride == record);
          // Broken framing ends the scan before there are records to name.
          const bool is_image = offset >= image.base + record * image.stride &&
                                offset < image.base + record * image.stride + 6;
          if (has_manifest || is_image) CHECK(fault.record == record);
        }
      }
    }
  }
}

TEST_CASE("any flipped value of a precache HDF5 file is located, and its record named",
          "[reader][verify][malformed][hdf5]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(
      folder.path(), {.format = Format::kHdf5, .spec = test::spec_of(3, 2, 1), .shards = {3}});
  const ShardColumns columns = *made.entries()[0].columns;
  for (const bool has_manifest : {true, false}) {
    if (!has_manifest) std::filesystem::remove(folder / kManifestName);
    const auto path = has_manifest ? folder.path() : made.shards[0];
    for (const Column& column : {columns.image, columns.label, columns.key, columns.crc32c}) {
      for (std::uint64_t i = 0; i < 3 * column.stride; ++i) {
        const ShardFault fault = fault_of_flip(path, made.shards[0], column.base + i);
        CAPTURE(has_manifest, column.type, i, fault.reason);
        CHECK(fault.record == i / column.stride);
        CHECK(fault.offset == columns.image.base + i / column.stride * columns.image.stride);
      }
    }
  }
}

TEST_CASE("a precache tar that is truncated anywhere is damaged, with or without a manifest",
          "[reader][verify][malformed]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {3}});
  std::filesystem::remove(folder / kManifestName);
  const auto whole = read_file(made.shards[0]);
  for (std::size_t bytes = whole.size() - 1; bytes >= 512; bytes -= bytes % 2 == 0 ? 1 : 255) {
    CAPTURE(bytes);
    test::cut_file(made.shards[0], bytes);
    CHECK(verified(made.shards[0]).faults.size() == 1);
  }
}

TEST_CASE("damage after the records of a tar is located", "[reader][verify][malformed]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {2}});
  const std::uint64_t bytes = std::filesystem::file_size(made.shards[0]);
  for (std::uint64_t offset = bytes - 1024; offset < bytes; offset += 33) {
    const ShardFault fault = fault_of_flip(folder.path(), made.shards[0], offset);
    CHECK(fault.offset.value() >= bytes - 1024);
    CHECK(*fault.offset <= offset);
  }
}

TEST_CASE("a damaged header of a tar names its record", "[reader][verify][malformed]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {4}});
  const std::uint64_t stride = made.entries()[0].columns->image.stride;
  test::flip_byte(made.shards[0], 2 * stride + 3);
  const VerifyReport report = verified(folder.path());
  REQUIRE(report.faults.size() == 1);
  CHECK(report.faults[0].record == 2);
  CHECK(report.faults[0].offset == 2 * stride);
}

TEST_CASE("damage that cannot be located has no offset", "[reader][verify][malformed][hdf5]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.format = Format::kHdf5, .shards = {4}});
  const ShardColumns columns = *made.entries()[0].columns;
  const std::uint64_t gap = columns.label.base + 4 * columns.label.stride;
  REQUIRE(gap < columns.key.base);  // filled up to the next boundary
  const ShardFault fault = fault_of_flip(folder.path(), made.shards[0], gap);
  CHECK_FALSE(fault.record);
  CHECK_FALSE(fault.offset);
  CHECK_THAT(fault.reason, contains("its records are intact"));
}

TEST_CASE("damage in several records is reported for each of them", "[reader][verify][malformed]") {
  const TempFolder folder;
  for (const bool has_manifest : {true, false}) {
    const MadeDataset made =
        make_dataset(folder.path(), {.format = Format::kTfrecord, .shards = {10, 10}});
    const Column image = made.entries()[1].columns->image;
    if (!has_manifest) std::filesystem::remove(folder / kManifestName);
    for (const std::uint64_t record : {2, 3, 9}) {
      test::flip_byte(made.shards[1], image.base + record * image.stride);
    }
    const VerifyReport report = verified(folder.path(), 3);
    REQUIRE(report.faults.size() == 3);
    CHECK(report.faults[0].record == 2);
    CHECK(report.faults[1].record == 3);
    CHECK(report.faults[2].record == 9);
    CHECK(report.faults[2].file == made.shards[1]);
  }
}

/// The first fault of a dataset whose first shard, of two equal ones, was damaged.
std::string fault_after(Format format, const std::function<void(const MadeDataset& made)>& damage) {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.format = format, .shards = {6, 6}});
  damage(made);
  const VerifyReport report = verified(folder.path(), 2);
  return report.faults.empty() ? "" : report.faults[0].reason;
}

TEST_CASE("shards that are missing, truncated, longer or swapped are faults",
          "[reader][verify][malformed]") {
  for (const Format format : kFormats) {
    CAPTURE(name(format));
    const auto remove = [](const MadeDataset& made) { std::filesystem::remove(made.shards[0]); };
    CHECK_THAT(fault_after(format, remove), contains("does not exist"));
    const auto cut = [](const MadeDataset& made) { test::cut_file(made.shards[0], 1000); };
    CHECK_THAT(fault_after(format, cut), contains("1000 bytes"));
    const auto empty = [](const MadeDataset& made) { test::cut_file(made.shards[0], 0); };
    CHECK_THAT(fault_after(format, empty), contains("0 bytes"));
    const auto grow = [](const MadeDataset& made) {
      test::cut_file(made.shards[0], std::filesystem::file_size(made.shards[0]) + 512);
    };
    CHECK_THAT(fault_after(format, grow), contains("bytes"));
    const auto exchange = [](const MadeDataset& made) {
      std::filesystem::rename(made.shards[1], made.shards[0]);
    };
    CHECK_THAT(fault_after(format, exchange), contains("CRC-32C"));
  }
}

TEST_CASE("a manifest with wrong places is a fault", "[reader][verify][malformed]") {
  const TempFolder folder;
  const std::vector<std::function<void(Column&)>> changes{
      [](Column& image) { image.base += 1; }, [](Column& image) { image.stride /= 2; },
      [](Column& image) { image.stride -= 1; }, [](Column& image) { image.stride *= 2; }};
  for (const Format format : kFormats) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      MadeDataset made = make_dataset(folder.path(), {.format = format, .shards = {6}});
      changes[i](made.entries()[0].columns.edit().image);
      made.write_manifest();
      const VerifyReport report = verified(folder.path());
      CAPTURE(name(format), i);
      REQUIRE(report.faults.size() == 1);
      CHECK_THAT(report.faults[0].reason, contains("where the manifest says"));
    }
  }
}

TEST_CASE("a manifest with another number of samples or format is a fault",
          "[reader][verify][malformed]") {
  const TempFolder folder;
  for (const Format format : {Format::kTar, Format::kTfrecord}) {
    // Nine records are read at a time.
    MadeDataset made = make_dataset(
        folder.path(), {.format = format, .spec = test::spec_of(100, 100, 3), .shards = {40}});
    for (std::uint64_t samples = 0; samples < 43; ++samples) {
      made.entries()[0].samples = samples;
      made.manifest.splits["train"].samples = samples;
      made.write_manifest();
      CAPTURE(name(format), samples);
      CHECK(verified(folder.path()).faults.size() == (samples == 40 ? 0 : 1));
    }
    made.entries()[0].samples = 40;
    made.manifest.splits["train"].samples = 40;
    made.manifest.format = format == Format::kTar ? Format::kTfrecord : Format::kTar;
    made.write_manifest();
    const VerifyReport report = verified(folder.path());
    REQUIRE(report.faults.size() == 1);
    CHECK_THAT(report.faults[0].reason, contains("its format is"));
  }
}

TEST_CASE("garbage after the records is found even if the CRC is right",
          "[reader][verify][malformed]") {
  const TempFolder folder;
  for (const Format format : {Format::kTar, Format::kTfrecord}) {
    MadeDataset made = make_dataset(
        folder.path(), {.format = format, .spec = test::spec_of(100, 100, 3), .shards = {40}});
    ShardEntry& entry = made.entries()[0];
    entry.samples = 27;  // nine are read at a time
    made.manifest.splits["train"].samples = entry.samples;
    test::Bytes bytes = read_file(made.shards[0]);
    std::ranges::fill(std::span(bytes).subspan(27 * entry.columns->image.stride), std::byte{'x'});
    test::write_bytes(made.shards[0], bytes);
    entry.crc32c = crc32c::value(bytes);
    made.write_manifest();
    CAPTURE(name(format));
    CHECK(verified(folder.path()).faults.size() == 1);
  }
}

TEST_CASE("records are named in shards that several threads read", "[reader][verify][malformed]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    // More than one thread's chunk, and records of which nine or one are read at once.
    for (const std::uint32_t width : {100U, 1800U}) {
      const auto path = folder / fmt::format("{}-{}", name(format), width);
      const MadeDataset made = make_dataset(path, {.format = format,
                                                   .spec = test::spec_of(100, width, 3),
                                                   .shards = {width == 100 ? 1200U : 60U}});
      const ShardEntry& entry = made.entries()[0];
      CAPTURE(name(format), width, entry.bytes);
      const VerifyReport whole = verified(path, 4);
      CHECK(whole.faults.empty());
      CHECK(whole.samples == entry.samples);
      for (const std::uint64_t record : {std::uint64_t{0}, entry.samples / 2, entry.samples - 1}) {
        const Column& image = entry.columns->image;
        const std::uint64_t offset = image.base + record * image.stride + 11;
        test::flip_byte(made.shards[0], offset);
        const VerifyReport report = verified(path, 4);
        test::flip_byte(made.shards[0], offset);
        REQUIRE(report.faults.size() == 1);
        CHECK(report.faults[0].record == record);
        CHECK(report.samples == entry.samples);
      }
    }
  }
}

TEST_CASE("one split can be verified alone", "[reader][verify]") {
  const TempFolder folder;
  const MadeDataset train = test::make_dataset(folder.path(), {.shards = {4}});
  (void)test::make_dataset(folder.path(), {.shards = {3, 2}, .split = "val"}, &train);
  CHECK(verified(folder.path()).files == 3);
  CHECK(verified(folder.path(), 1, "val").files == 2);
  CHECK_THROWS_AS(verified(folder.path(), 1, "test"), InvalidArgument);
}

TEST_CASE("unsupported content is not reported as damage", "[reader][verify]") {
  const TempFolder folder;
  test::write_text(folder / "a.tar", "\x28\xb5\x2f\xfd and more");
  const VerifyReport report = verified(folder / "a.tar");
  CHECK(report.faults.empty());
  REQUIRE(report.unsupported.size() == 1);
  CHECK_THAT(report.unsupported[0].reason, contains("zstd"));
  test::write_text(folder / "a.tar", "\x1f\x8b\x08 and more");
  const VerifyReport cut = verified(folder / "a.tar");
  REQUIRE(cut.faults.size() == 1);
  CHECK_THAT(cut.faults[0].reason, contains("the compressed data"));
  CHECK_THROWS_AS(verified(folder / "none.tar"), IoError);
}

TEST_CASE("verifying stops on request", "[reader][verify]") {
  const TempFolder folder;
  (void)make_dataset(folder.path(), {.shards = {6}});
  VerifyProgress progress;
  progress.stop = true;
  CHECK(verify({folder.path()}, {}, progress).interrupted);
}

}  // namespace
}  // namespace precache
