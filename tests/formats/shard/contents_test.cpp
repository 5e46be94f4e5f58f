// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "formats/shard/contents_survey.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/example_writer.hpp"
#include "tests/support/tar_writer.hpp"

namespace precache {
namespace {

using test::bytes_of;
using test::tar_entry;

using Extensions = std::vector<std::string>;

TEST_CASE("the survey of a tar counts entries, extensions and groups", "[formats][tar]") {
  const std::string archive = tar_entry("d/", "", {.type = '5'}) + tar_entry("d/a.jpg", "123") +
                              tar_entry("d/a.cls", "0") + tar_entry("d/b.jpg", "12345") +
                              tar_entry("d/b.cls", "1") + tar_entry("c.seg.png", "x") +
                              tar_entry("README", "words") + tar_entry("__x__/y.jpg", "dropped") +
                              tar_entry("link", "", {.type = '2'}) + test::kTarEnd;
  tar::ContentsSurvey survey;
  survey.add(bytes_of(archive), "a.tar");
  const TarContents contents = survey.result();
  CHECK(contents.files == 7);
  CHECK(contents.directories == 1);
  CHECK(contents.links == 1);
  CHECK(contents.ungrouped_files == 2);
  CHECK(contents.samples == 3);
  REQUIRE(contents.extensions.size() == 3);
  CHECK(contents.extensions[0].name == "cls");
  CHECK(contents.extensions[1].name == "jpg");
  CHECK(contents.extensions[1].bytes == ValueRange{2, 3, 5, 8});
  CHECK(contents.extensions[2].name == "seg.png");
  REQUIRE(contents.patterns.size() == 2);
  CHECK(contents.patterns[0].extensions == Extensions{"jpg", "cls"});
  CHECK(contents.patterns[0].samples == 2);
}

TEST_CASE("a repeated extension starts another sample", "[formats][tar]") {
  tar::ContentsSurvey survey;
  survey.add(bytes_of(tar_entry("a.jpg", "1") + tar_entry("a.jpg", "2") + test::kTarEnd), "a");
  survey.add(bytes_of(tar_entry("a.jpg", "3") + test::kTarEnd), "b");
  CHECK(survey.result().samples == 3);
}

TEST_CASE("the survey of a tar keeps the entries before the damage", "[formats][tar][malformed]") {
  const std::string whole = tar_entry("a.jpg", "1") + tar_entry("b.jpg", "2") + test::kTarEnd;
  for (std::size_t size = 1; size < 2048; ++size) {
    CAPTURE(size);
    const auto cut = test::cut(bytes_of(whole), size);
    tar::ContentsSurvey survey;
    const bool is_at_end = size % 1024 == 0;  // where nothing shows that more should follow
    if (is_at_end) {
      CHECK_NOTHROW(survey.add(cut, "a"));
    } else {
      CHECK_THROWS_AS(survey.add(cut, "a"), CorruptData);
    }
    CHECK(survey.result().files == size / 1024);
    CHECK(survey.result().samples == size / 1024);
  }
}

TEST_CASE("endless names do not make endless lists", "[formats][tar][malformed]") {
  std::string archive;
  for (int i = 0; i < 1500; ++i) archive += tar_entry(fmt::format("a{0}.x{0}", i), "");
  tar::ContentsSurvey survey;
  survey.add(bytes_of(archive + test::kTarEnd), "a");
  CHECK(survey.result().extensions.size() == 1000);
  CHECK(survey.result().patterns.size() == 1000);
  CHECK(survey.result().samples == 1500);
  CHECK(survey.result().has_more);
}

const TfrecordContents::Feature& feature_of(const TfrecordContents& contents,
                                            const std::string& name) {
  const auto found = std::ranges::find(contents.features, name, &TfrecordContents::Feature::name);
  if (found == contents.features.end()) FAIL("there is no feature " << name);
  return *found;
}

TEST_CASE("the survey of TFRecords lists features with types and sizes", "[formats][tfrecord]") {
  const std::string floats = test::feature("f", 2, test::delimited(1, std::string(12, '\0')));
  const std::string none = test::delimited(1, test::delimited(1, "n"));
  const std::string jpeg = "\xff\xd8\xff and so on";
  const std::string file =
      test::tfrecord(test::example(test::bytes_feature("image", jpeg) +
                                   test::int_feature("i", {1, 300, -1}) + floats + none)) +
      test::tfrecord(
          test::example(test::bytes_feature("image", "raw") + test::int_feature("i", {5}, false))) +
      test::tfrecord("no Example at all");
  tfrecord::ContentsSurvey survey;
  survey.add(bytes_of(file), "a");
  const TfrecordContents contents = survey.result();
  CHECK(contents.records == 3);
  CHECK(contents.examples == 2);
  CHECK(contents.sequence_examples == 0);
  REQUIRE(contents.features.size() == 4);
  const auto& image = feature_of(contents, "image");
  CHECK(image.kind == "bytes");
  CHECK(image.records == 2);
  CHECK(image.bytes == ValueRange{2, 3, jpeg.size(), 3 + jpeg.size()});
  CHECK(image.content == "JPEG");
  CHECK(feature_of(contents, "i").kind == "int64");
  CHECK(feature_of(contents, "i").values == ValueRange{2, 1, 3, 4});
  CHECK(feature_of(contents, "f").kind == "float");
  CHECK(feature_of(contents, "f").values == ValueRange{1, 3, 3, 3});
  CHECK(feature_of(contents, "n").kind == "empty");
}

TEST_CASE("a SequenceExample shows its context and its lists", "[formats][tfrecord]") {
  const std::string step = test::delimited(1, test::delimited(1, test::delimited(1, "word")));
  const std::string list =
      test::delimited(1, test::delimited(1, "steps") + test::delimited(2, step + step));
  const std::string record =
      test::delimited(1, test::int_feature("i", {7})) + test::delimited(2, list);
  tfrecord::ContentsSurvey survey;
  survey.add(bytes_of(test::tfrecord(record)), "a");
  const TfrecordContents contents = survey.result();
  CHECK(contents.sequence_examples == 1);
  CHECK_FALSE(feature_of(contents, "i").is_sequence);
  CHECK(feature_of(contents, "steps").is_sequence);
  CHECK(feature_of(contents, "steps").values == ValueRange{1, 2, 2, 2});
  CHECK(feature_of(contents, "steps").bytes == ValueRange{1, 4, 4, 4});
}

TEST_CASE("the survey of TFRecords keeps the records before the damage",
          "[formats][tfrecord][malformed]") {
  const std::string record = test::tfrecord(test::example(test::bytes_feature("image", "raw")));
  const auto whole = bytes_of(record + record);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == record.size()) continue;
    CAPTURE(size);
    tfrecord::ContentsSurvey survey;
    CHECK_THROWS_AS(survey.add(test::cut(whole, size), "a"), CorruptData);
    CHECK(survey.result().records == size / record.size());
  }
}

}  // namespace
}  // namespace precache
