// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/helper/helper_client.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <functional>

#include "formats/hdf5/helper/helper_message.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

/// A script that takes the place of `precache`.
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
  index.columns.edit().image = {100, 100, "uint8"};
  index.columns.edit().label = {300, 8, "int64"};
  index.columns.edit().key = {500, 3, "utf8"};
  return index;
}

TEST_CASE("an index arrives as it was sent", "[formats][hdf5][roundtrip]") {
  const ShardIndex sent = table();
  const ShardIndex got = hdf5::decode<ShardIndex>(hdf5::encode(sent), "a.h5", sent.bytes);
  CHECK(got.format == sent.format);
  CHECK(got.bytes == sent.bytes);
  CHECK(got.samples == sent.samples);
  CHECK(got.spec == sent.spec);
  CHECK(got.unsupported_reason == sent.unsupported_reason);
  CHECK(got.columns == sent.columns);
  CHECK(got.places == sent.places);
  CHECK(got.keys == sent.keys);
  CHECK(got.classes == sent.classes);
  ShardIndex bare = sent;
  bare.spec.reset();
  bare.unsupported_reason = "its samples are arrays of int64";
  const ShardIndex again = hdf5::decode<ShardIndex>(hdf5::encode(bare), "a.h5", bare.bytes);
  CHECK_FALSE(again.spec);
  CHECK(again.unsupported_reason == bare.unsupported_reason);
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

TEST_CASE("contents arrive as they were sent", "[formats][hdf5][roundtrip]") {
  const Hdf5Contents sent = contents();
  const auto message = hdf5::encode(sent);
  const Hdf5Contents got = hdf5::decode<Hdf5Contents>(message, "a.h5", 1000);
  CHECK(got.objects == sent.objects);
  CHECK(got.has_more);
  for (std::size_t size = 0; size < message.size(); ++size) {
    const std::vector<std::uint8_t> cut(message.begin(),
                                        message.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(hdf5::decode<Hdf5Contents>(cut, "a.h5", 1000), CorruptData);
  }
  CHECK_THROWS_AS(hdf5::decode<Hdf5Contents>(hdf5::encode(table()), "a.h5", 1000), CorruptData);
  const auto error = hdf5::encode(std::make_exception_ptr(Unsupported("not this", "")));
  CHECK_THROWS_AS(hdf5::decode<Hdf5Contents>(error, "a.h5", 1000), Unsupported);
}

TEST_CASE("errors arrive with their type and text", "[formats][hdf5][roundtrip]") {
  const auto send = [](const auto& error) {
    (void)hdf5::decode<ShardIndex>(hdf5::encode(std::make_exception_ptr(error)), "a.h5", 1);
  };
  const auto corrupt = [&] { send(CorruptData("b.h5", 7, "no \xff good")); };
  try {
    corrupt();
    FAIL("no error was thrown");
  } catch (const CorruptData& error) {
    CHECK(error.path() == "a.h5");
    CHECK(error.offset() == 7);
    CHECK(error.reason() == "no \xff good");
  }
  try {
    send(Unsupported("not this", "Do that."));
    FAIL("no error was thrown");
  } catch (const Unsupported& error) {
    CHECK(error.what() == std::string("not this"));
    CHECK(error.hint() == "Do that.");
  }
  CHECK_THROWS_AS(send(std::bad_alloc()), CorruptData);
  CHECK_THROWS_AS(send(std::runtime_error("odd")), IoError);
}

TEST_CASE("a truncated or false message is refused", "[formats][hdf5][malformed]") {
  const auto whole = hdf5::encode(table());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const std::vector<std::uint8_t> cut(whole.begin(),
                                        whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(hdf5::decode<ShardIndex>(cut, "a.h5", 1000), CorruptData);
  }
  CHECK_THROWS_AS(hdf5::decode<ShardIndex>(whole, "a.h5", 999), CorruptData);  // of another file
  const std::function<void(void (*)(ShardIndex&))> refuse = [](void (*change)(ShardIndex&)) {
    ShardIndex index = table();
    change(index);
    CHECK_THROWS_AS(hdf5::decode<ShardIndex>(hdf5::encode(index), "a.h5", 1000), CorruptData);
  };
  refuse([](ShardIndex& index) { index.places[1].payload = 983; });
  refuse([](ShardIndex& index) { index.places[1].payload_bytes = UINT64_MAX; });
  refuse([](ShardIndex& index) { index.places[1].key_bytes = 3; });
  refuse([](ShardIndex& index) { index.places[0].record = 1001; });
  refuse([](ShardIndex& index) { index.samples = 3; });
}

TEST_CASE("if the scanning process crashes, the file is corrupt", "[formats][hdf5][malformed]") {
  const test::TempFolder folder;
  const auto message = [&](const std::string& lines) {
    return test::message_of<CorruptData>(
        [&] { (void)hdf5::scan_in_helper(script(folder, lines), "a.h5", 10); });
  };
  CHECK_THAT(message("kill -SEGV $$"),
             test::contains("'a.h5' is corrupt") &&
                 test::contains("crashed while reading the file (Segmentation fault)"));
  CHECK_THAT(message("kill -ABRT $$"), test::contains("crashed while reading the file (Aborted)"));
  CHECK_THAT(message("kill -XCPU $$"), test::contains("took too long"));
  CHECK_THAT(message("echo rubbish"), test::contains("invalid result"));
}

TEST_CASE("rows of images arrive as they were sent", "[formats][hdf5][roundtrip]") {
  const hdf5::ImageRows sent{.name = "x",
                             .count = 2,
                             .array = PixelArray{PixelType::kUint16, Layout::kHwc, 4, 3, 3},
                             .row_bytes = 72,
                             .offset = 100,
                             .labels = {"7", "\xff"},
                             .maybe_labels = "",
                             .keys = {"a", ""},
                             .classes = {"cat"}};
  const auto message = hdf5::encode(sent);
  const hdf5::ImageRows got = hdf5::decode<hdf5::ImageRows>(message, "a.h5", 244);
  CHECK(got.name == sent.name);
  CHECK(got.array->size_bytes() == 72);
  CHECK(got.offset == sent.offset);
  CHECK(got.labels == sent.labels);
  CHECK(got.keys == sent.keys);
  CHECK(got.classes == sent.classes);
  for (std::size_t size = 0; size < message.size(); ++size) {
    const std::vector<std::uint8_t> cut(message.begin(),
                                        message.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_THROWS_AS(hdf5::decode<hdf5::ImageRows>(cut, "a.h5", 244), CorruptData);
  }
  CHECK_THROWS_AS(hdf5::decode<hdf5::ImageRows>(message, "a.h5", 243),
                  CorruptData);  // past the end
  const std::function<void(void (*)(hdf5::ImageRows&))> refuse = [&](void (*change)(
                                                                     hdf5::ImageRows&)) {
    hdf5::ImageRows rows = sent;
    change(rows);
    CHECK_THROWS_AS(hdf5::decode<hdf5::ImageRows>(hdf5::encode(rows), "a.h5", 244), CorruptData);
  };
  refuse([](hdf5::ImageRows& rows) { rows.count = UINT64_MAX; });
  refuse([](hdf5::ImageRows& rows) { rows.labels.pop_back(); });
  refuse([](hdf5::ImageRows& rows) { rows.keys.emplace_back(); });
  refuse([](hdf5::ImageRows& rows) { rows.row_bytes = 71; });
  refuse([](hdf5::ImageRows& rows) { rows.array->type = static_cast<PixelType>(4); });
  refuse([](hdf5::ImageRows& rows) { rows.array->channels = 0x40000003; });
}

TEST_CASE("an answer of another version is refused with that reason", "[formats][hdf5]") {
  const test::TempFolder folder;
  const auto answer = [&](const std::string& lines) {
    return test::message_of<Unsupported>(
        [&] { (void)hdf5::scan_in_helper(script(folder, lines), "a.h5", 10); });
  };
  CHECK_THAT(answer("printf '\\241hprotocol\\001'"), test::contains("another version"));
  CHECK_THAT(answer("exit 2"), test::contains("built without HDF5"));
}

TEST_CASE("if the scanning process cannot run, the file is not to blame", "[formats][hdf5]") {
  const test::TempFolder folder;
  const auto call = [&](const std::filesystem::path& program) {
    return [=] { (void)hdf5::scan_in_helper(program, "a.h5", 10); };
  };
  CHECK_THROWS_AS(call(folder / "none")(), IoError);
  CHECK_THROWS_AS(call(script(folder, "exit 3"))(), IoError);
  CHECK_THROWS_AS(call(script(folder, "kill -KILL $$"))(), IoError);
}

TEST_CASE("the scanning process gets any words of a request unchanged", "[formats][hdf5]") {
  const test::TempFolder folder;
  const auto program = script(folder, "printf '%s|' \"$@\" > \"${0%/*}/words\"; kill -SEGV $$");
  CHECK_THROWS_AS(hdf5::scan_in_helper(program, "-a b.h5", 10, {"x y", "", true}), CorruptData);
  CHECK(test::read_text(folder / "words") == "hdf5-helper|0|-a b.h5|-a b.h5|x y||without labels|");
  CHECK_THROWS_AS(hdf5::find_images_in_helper(program, "copy", 10, {"", "-l", false}, "a.h5"),
                  CorruptData);
  CHECK(test::read_text(folder / "words") == "hdf5-helper|1|copy|a.h5||-l||");
  for (const auto& keys : {SampleKeys{"i", "l", true}, SampleKeys{}}) {
    std::vector<std::string> texts =
        hdf5::words_of({hdf5::HelperRequest::Kind::kCheck, "file", "shown", keys});
    std::vector<char*> words;
    for (std::string& text : texts) words.push_back(text.data());
    const hdf5::HelperRequest got = hdf5::request_from(words);
    CHECK(got.kind == hdf5::HelperRequest::Kind::kCheck);
    CHECK(got.file == "file");
    CHECK(got.shown_as == "shown");
    CHECK(got.keys.image == keys.image);
    CHECK(got.keys.label == keys.label);
    CHECK(got.keys.without_labels == keys.without_labels);
    words.pop_back();
    CHECK_THROWS_AS(hdf5::request_from(words), InvalidArgument);
  }
}

TEST_CASE("only HDF5 files are scanned by another process", "[formats][hdf5]") {
  const test::TempFolder folder;
  const auto program = script(folder, "kill -SEGV $$");
  const auto hdf5_bytes = test::bytes_of("\x89HDF\r\n\x1a\n");
  CHECK_THROWS_AS(scan_shard(hdf5_bytes, "a.h5", {}, {}, program), CorruptData);
  CHECK(scan_shard({}, "a.tfrecord", {}, {}, program).samples == 0);
}

TEST_CASE("without a helper the command is looked for on PATH", "[formats][hdf5]") {
  const test::TempFolder folder;
  const std::string before = std::getenv("PATH");
  struct Reset {
    ~Reset() { ::setenv("PATH", path.c_str(), 1); }
    std::string path;
  } const reset{before};
  REQUIRE(::setenv("PATH", folder.path().c_str(), 1) == 0);
  const auto scan = [] { (void)hdf5::scan_in_helper({}, "a.h5", 10); };
  try {
    scan();
    FAIL("there is no command");
  } catch (const Unsupported& error) {
    CHECK_THAT(error.what(), test::contains("the precache command, which was not found on PATH"));
    CHECK_THAT(error.hint(), test::contains("set `helper` to its path"));
  }
  test::write_text(folder / "precache", "#!/bin/sh\nkill -SEGV $$\n");
  REQUIRE(::chmod((folder / "precache").c_str(), 0700) == 0);
  CHECK_THROWS_AS(scan(), CorruptData);
}

}  // namespace
}  // namespace precache
