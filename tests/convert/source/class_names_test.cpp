// SPDX-License-Identifier: Apache-2.0
#include "convert/source/class_names.hpp"

#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

using Texts = std::vector<std::string>;

TEST_CASE("class names stand one on a line", "[convert][classes]") {
  const test::TempFolder folder;
  const auto names_of = [&](std::string_view text) {
    test::write_text(folder / "names.txt", text);
    return read_class_names(folder / "names.txt");
  };
  CHECK(names_of("cat\ndog\n") == Texts{"cat", "dog"});
  CHECK(names_of("cat\r\ndog") == Texts{"cat", "dog"});
  CHECK(names_of("zebra\n\nant, big\n") ==
        Texts{"zebra", "ant, big"});  // the file's order, not the sorted one
  CHECK(names_of("\xe7\x8c\xab\n\xff\n") == Texts{"\xe7\x8c\xab", "%FF"});
}

TEST_CASE("class names come from a manifest too", "[convert][classes]") {
  const test::TempFolder folder;
  Manifest manifest;
  manifest.classes = {"b", "a"};
  manifest.format = Format::kTar;
  manifest.spec = {DType::kUint8, Layout::kChw, 2, 2, 3};
  manifest.splits["train"].shards.push_back({"train-000000.tar", 0, 1024, 0, {}});
  test::write_text(folder / "dataset.json", manifest.to_json());
  CHECK(read_class_names(folder / "dataset.json") == Texts{"b", "a"});
  test::write_text(folder / "dataset.json", "cat\ndog\n");
  CHECK_THROWS_AS(read_class_names(folder / "dataset.json"), CorruptData);
}

TEST_CASE("class names that are missing or double are refused", "[convert][classes][malformed]") {
  const test::TempFolder folder;
  CHECK_THROWS_AS(read_class_names(folder / "missing"), IoError);
  test::write_text(folder / "names.txt", "\n\r\n\n");
  CHECK_THAT(test::message_of<InvalidArgument>(
                 [&] { static_cast<void>(read_class_names(folder / "names.txt")); }),
             test::contains("no class names"));
  test::write_text(folder / "names.txt", "cat\ndog\ncat\n");
  CHECK_THAT(test::message_of<InvalidArgument>(
                 [&] { static_cast<void>(read_class_names(folder / "names.txt")); }),
             test::contains("'cat' twice"));
}

TEST_CASE("a byte order mark is no part of a class name", "[convert][classes]") {
  const test::TempFolder folder;
  test::write_text(folder / "names.txt",
                   "\xef\xbb\xbf"
                   "cat\ndog\n");
  CHECK(read_class_names(folder / "names.txt") == Texts{"cat", "dog"});
}

}  // namespace
}  // namespace precache
