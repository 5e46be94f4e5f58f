// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/helper/helper_process.hpp"

#include <sys/stat.h>

#include <functional>

#include "formats/hdf5/helper/helper_message.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/isolate_hdf5.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

/// A program in the place of `precache` that does this.
std::filesystem::path script(const test::TempFolder& folder, const std::string& lines) {
  const auto path = folder / "program";
  test::write_text(path, "#!/bin/sh\n" + lines + "\n");
  REQUIRE(::chmod(path.c_str(), 0700) == 0);
  return path;
}

ShardIndex table() {
  ShardIndex index;
  index.format = Format::kHdf5;
  index.bytes = 1000;
  index.samples = 2;
  index.spec = test::spec_of(2, 3, 3);
  index.places = {{100, 100, 18, 7, 0, 1}, {200, 200, 18, -1, 1, 2}};
  index.keys = std::string("a\0\xff", 3);
  index.classes = {"cat", "\xff dog"};
  index.columns.image = {100, 100, "uint8"};
  index.columns.label = {300, 8, "int64"};
  index.columns.key = {500, 3, "utf8"};
  return index;
}

TEST_CASE("an index arrives as it was sent", "[formats][hdf5][roundtrip]") {
  const ShardIndex sent = table();
  const ShardIndex got = hdf5::decode(hdf5::encode(sent), "a.h5", sent.bytes);
  CHECK(got.format == sent.format);
  CHECK(got.bytes == sent.bytes);
  CHECK(got.samples == sent.samples);
  CHECK(got.spec == sent.spec);
  CHECK(got.obstacle == sent.obstacle);
  CHECK(got.columns == sent.columns);
  CHECK(got.places == sent.places);
  CHECK(got.keys == sent.keys);
  CHECK(got.classes == sent.classes);
  ShardIndex bare = sent;
  bare.spec.reset();
  bare.obstacle = "its samples are arrays of int64";
  const ShardIndex again = hdf5::decode(hdf5::encode(bare), "a.h5", bare.bytes);
  CHECK_FALSE(again.spec);
  CHECK(again.obstacle == bare.obstacle);
}

Hdf5Contents contents() {
  Hdf5Contents contents;
  contents.objects.push_back({.name = "a\xff", .kind = "soft link", .target = "/b"});
  contents.objects.push_back({.name = "b",
                              .kind = "dataset",
                              .type = "uint8",
                              .shape = {3, 4},
                              .storage = "chunked",
                              .chunk = {1, 4},
                              .filters = {"gzip", "shuffle"},
                              .offset = 77,
                              .stored_bytes = 12});
  contents.has_more = true;
  return contents;
}

TEST_CASE("the contents arrives as it was sent", "[formats][hdf5][roundtrip]") {
  const Hdf5Contents sent = contents();
  const auto message = hdf5::encode(sent);
  const Hdf5Contents got = hdf5::decode_contents(message, "a.h5");
  CHECK(got.objects == sent.objects);
  CHECK(got.has_more);
  for (std::size_t size = 0; size < message.size(); ++size) {
    const std::vector<std::uint8_t> cut(message.begin(),
                                        message.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(hdf5::decode_contents(cut, "a.h5"), CorruptData);
  }
  CHECK_THROWS_AS(hdf5::decode_contents(hdf5::encode(table()), "a.h5"), CorruptData);
  const auto error = hdf5::encode(std::make_exception_ptr(Unsupported("not this", "")));
  CHECK_THROWS_AS(hdf5::decode_contents(error, "a.h5"), Unsupported);
}

TEST_CASE("errors arrive as what they were", "[formats][hdf5][roundtrip]") {
  const auto send = [](const auto& error) {
    (void)hdf5::decode(hdf5::encode(std::make_exception_ptr(error)), "a.h5", 1);
  };
  const auto corrupt = [&] { send(CorruptData("b.h5", 7, "no \xff good")); };
  try {
    corrupt();
    FAIL("it is no error");
  } catch (const CorruptData& error) {
    CHECK(error.path() == "a.h5");
    CHECK(error.offset() == 7);
    CHECK(error.reason() == "no \xff good");
  }
  try {
    send(Unsupported("not this", "Do that."));
    FAIL("it is no error");
  } catch (const Unsupported& error) {
    CHECK(error.what() == std::string("not this"));
    CHECK(error.hint() == "Do that.");
  }
  CHECK_THROWS_AS(send(std::bad_alloc()), CorruptData);
  CHECK_THROWS_AS(send(std::runtime_error("odd")), IoError);
}

TEST_CASE("a message that was cut or lies is refused", "[formats][hdf5][malformed]") {
  const auto whole = hdf5::encode(table());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const std::vector<std::uint8_t> cut(whole.begin(),
                                        whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(hdf5::decode(cut, "a.h5", 1000), CorruptData);
  }
  CHECK_THROWS_AS(hdf5::decode(whole, "a.h5", 999), CorruptData);  // of another file
  const std::function<void(void (*)(ShardIndex&))> refuse = [](void (*change)(ShardIndex&)) {
    ShardIndex index = table();
    change(index);
    CHECK_THROWS_AS(hdf5::decode(hdf5::encode(index), "a.h5", 1000), CorruptData);
  };
  refuse([](ShardIndex& index) { index.places[1].payload = 983; });
  refuse([](ShardIndex& index) { index.places[1].payload_bytes = UINT64_MAX; });
  refuse([](ShardIndex& index) { index.places[1].key_bytes = 3; });
  refuse([](ShardIndex& index) { index.places[0].record = 1001; });
  refuse([](ShardIndex& index) { index.samples = 3; });
}

TEST_CASE("the death of a scanning process is the file's fault", "[formats][hdf5][malformed]") {
  const test::TempFolder folder;
  const auto message = [&](const std::string& lines) {
    return test::message_of<CorruptData>(
        [&] { (void)hdf5::scan_in_helper(script(folder, lines), "a.h5", 10); });
  };
  CHECK_THAT(message("kill -SEGV $$"), test::contains("'a.h5' is corrupt") &&
                                           test::contains("crashed on it (Segmentation fault)"));
  CHECK_THAT(message("kill -ABRT $$"), test::contains("crashed on it (Aborted)"));
  CHECK_THAT(message("kill -XCPU $$"), test::contains("takes too long"));
  CHECK_THAT(message("echo rubbish"), test::contains("went astray"));
}

TEST_CASE("a scanning process that cannot do its work is not the file's fault", "[formats][hdf5]") {
  const test::TempFolder folder;
  const auto call = [&](const std::filesystem::path& program) {
    return [=] { (void)hdf5::scan_in_helper(program, "a.h5", 10); };
  };
  CHECK_THROWS_AS(call(folder / "none")(), IoError);
  CHECK_THROWS_AS(call(script(folder, "exit 2"))(), IoError);
  CHECK_THROWS_AS(call(script(folder, "kill -KILL $$"))(), IoError);
}

TEST_CASE("a scanning process gets the file's name whatever it is", "[formats][hdf5]") {
  const test::TempFolder folder;
  const auto program = script(folder, "printf '%s|' \"$@\" > \"${0%/*}/words\"; kill -SEGV $$");
  CHECK_THROWS_AS(hdf5::scan_in_helper(program, "-a b.h5", 10), CorruptData);
  CHECK(test::read_text(folder / "words") == "scan-hdf5|--|-a b.h5|");
  CHECK_THROWS_AS(hdf5::survey_in_helper(program, "-a b.h5", 10), CorruptData);
  CHECK(test::read_text(folder / "words") == "scan-hdf5|--contents|--|-a b.h5|");
}

TEST_CASE("only HDF5 files are scanned by another process", "[formats][hdf5]") {
  const test::TempFolder folder;
  isolate_hdf5(script(folder, "kill -SEGV $$"));
  struct Reset {
    ~Reset() { isolate_hdf5({}); }
  } const reset;
  CHECK_THROWS_AS(scan_shard(test::bytes_of("\x89HDF\r\n\x1a\n"), "a.h5"), CorruptData);
  CHECK(scan_shard({}, "a.tfrecord").samples == 0);
}

}  // namespace
}  // namespace precache
