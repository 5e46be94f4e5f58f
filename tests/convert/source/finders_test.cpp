// SPDX-License-Identifier: Apache-2.0
// The reader, build, inspect and the sidecars see the same samples in a file.
#include <algorithm>
#include <sstream>

#include "convert/sidecars/dali_index.hpp"
#include "convert/source/source_path.hpp"
#include "convert/source/tar_images.hpp"
#include "convert/source/tfrecord_images.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/contents_survey.hpp"
#include "formats/shard/file_names.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "reader/shards/shard_listing.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/example_writer.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

using test::bytes_feature;
using test::int_feature;
using test::kTarEnd;
using test::tar_entry;

const std::string kJpeg = "\xff\xd8\xff and so on";

/// One sample: what is its image, and its label.
using Seen = std::pair<std::string, std::int64_t>;
using AllSeen = std::vector<Seen>;

AllSeen seen_by_reader(const std::string& file, const std::string& name) {
  const ShardIndex index = scan_shard(test::bytes_of(file), name);
  AllSeen seen;
  for (const SampleLocation& place : index.places) {
    seen.emplace_back(file.substr(place.payload, place.payload_bytes), place.label);
  }
  return seen;
}

AllSeen seen_by_build(const std::string& archive) {
  std::vector<TarImages> tars;
  tars.push_back(scan_tar_images(test::bytes_of(archive), "a.tar", 0, {}));
  const Source source = list_tar_images(std::move(tars), "a.tar", {});
  AllSeen seen;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    const ListedFile image = source.listing[i];
    seen.emplace_back(archive.substr(image.offset, image.size), image.label);
  }
  return seen;
}

std::uint64_t counted_by_inspect(const std::string& archive) {
  tar::ContentsSurvey contents;
  contents.add(test::bytes_of(archive), "a.tar");
  return contents.result().samples;
}

/// The first file of each sample that DALI would read.
std::vector<std::string> seen_by_dali(const std::string& archive) {
  const test::TempFolder folder;
  test::write_text(folder / "a.tar", archive);
  std::istringstream lines(dali::index_of(folder / "a.tar", Format::kTar).text);
  std::vector<std::string> seen;
  std::string line;
  std::getline(lines, line);  // the version and the number of samples
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string extension;
    std::size_t offset = 0;
    std::size_t size = 0;
    words >> extension >> offset >> size;
    seen.push_back(archive.substr(offset, size));
  }
  return seen;
}

std::string hard_link(const std::string& name, const std::string& target) {
  std::string entry = tar_entry(name, "", {.type = '1'});
  entry.replace(157, target.size(), target);
  test::set_tar_checksum(entry);
  return entry;
}

TEST_CASE("reader, build, inspect and DALI see the same samples of a tar",
          "[convert][source][tar][index]") {
  struct Case {
    const char* what;
    std::string archive;
    AllSeen samples;
  };
  const std::string plain = tar_entry("z.jpg", "z") + tar_entry("z.cls", "9");
  for (const auto& [what, entries, expected] : {
           Case{"a plain sample", "", {}},
           Case{"an extension that comes again, after another image",
                tar_entry("a.jpg", "1") + tar_entry("a.png", "2") + tar_entry("a.cls", "3") +
                    tar_entry("a.png", "4") + tar_entry("a.cls", "5"),
                {{"1", 3}, {"4", 5}}},
           Case{"extensions that differ in case",
                tar_entry("a.JPG", "1") + tar_entry("a.CLS", "2") + tar_entry("a.jpg", "3") +
                    tar_entry("a.cls", "4"),
                {{"1", 2}, {"3", 4}}},
           Case{"a hidden folder", tar_entry(".git/a.jpg", "1") + tar_entry(".git/a.cls", "2"), {}},
           Case{"files of macOS",
                tar_entry("._a.jpg", "1") + tar_entry("__MACOSX/._a.cls", "2"),
                {}},
           Case{"a hard link",
                tar_entry("a.jpg", "1") + tar_entry("a.cls", "2") + hard_link("b.jpg", "./a.jpg") +
                    tar_entry("b.cls", "3"),
                {{"1", 2}, {"1", 3}}},
           Case{"a hard link that leads nowhere", hard_link("b.jpg", "gone.jpg"), {}},
           Case{"a symbolic link", tar_entry("b.jpg", "", {.type = '2'}), {}},
           Case{"one file with ./ before it",
                tar_entry("./a.jpg", "1") + tar_entry("a.cls", "2"),
                {{"1", 2}}},
           Case{"a JSON before the class",
                tar_entry("a.jpg", "1") + tar_entry("a.json", R"({"label": 7})") +
                    tar_entry("a.cls", "2"),
                {{"1", 2}}},
           Case{"a class of two lines",
                tar_entry("a.jpg", "1") + tar_entry("a.cls", "two\nlines") +
                    tar_entry("a.json", R"({"label": 7})"),
                {{"1", 7}}},
           Case{"a name without letters after its dot", tar_entry("a.", "1"), {}},
           Case{"a folder that webdataset drops", tar_entry("__meta__/a.jpg", "1"), {}},
           Case{"a name that no file has",
                test::pax_header(test::pax_record("path", std::string(4096, 'n') + ".jpg")) +
                    tar_entry("n.jpg", "1"),
                {}},
       }) {
    CAPTURE(what);
    const std::string archive = entries + plain + kTarEnd;
    AllSeen samples = expected;
    samples.emplace_back("z", 9);
    CHECK(seen_by_reader(archive, "a.tar") == samples);
    CHECK(seen_by_build(archive) == samples);
    CHECK(counted_by_inspect(archive) == samples.size());
    std::vector<std::string> first_files;
    for (const Seen& sample : samples) first_files.push_back(sample.first);
    CHECK(seen_by_dali(archive) == first_files);
  }
}

TEST_CASE("the image of a sample is the one that can be decoded", "[convert][source][tar]") {
  const std::string archive =
      tar_entry("a.webp", "w") + tar_entry("a.jpe", "j") + tar_entry("a.cls", "1") + kTarEnd;
  CHECK(seen_by_reader(archive, "a.tar") == AllSeen{{"j", 1}});
  CHECK(seen_by_build(archive) == AllSeen{{"j", 1}});
}

TEST_CASE("only what is needed of a tar may not be sparse", "[convert][source][tar]") {
  const std::string archive = tar_entry("a.jpg", "1") + tar_entry("a.cls", "2") +
                              tar_entry("a.log", "x", {.type = 'S'}) + kTarEnd;
  CHECK(seen_by_reader(archive, "a.tar") == AllSeen{{"1", 2}});
  CHECK(seen_by_build(archive) == AllSeen{{"1", 2}});
}

AllSeen records_seen_by_build(const std::string& file) {
  const auto bytes = test::bytes_of(file);
  const RecordImages found = scan_records(bytes, "a.tfrecord", 0, {});
  const auto labels = found.labels.number({}, [](std::size_t) { return std::string(); });
  AllSeen seen;
  for (std::size_t i = 0; i < found.records.size(); ++i) {
    const ListedFile record = found.records[i];
    const auto image = image_of_record(std::span(bytes).subspan(record.offset, record.size),
                                       found.image_key, "a.tfrecord", record.offset);
    seen.emplace_back(image ? test::text_of(*image) : "none", labels.labels[i]);
  }
  return seen;
}

TEST_CASE("reader and build see the same samples of a TFRecord file",
          "[convert][source][tfrecord]") {
  const auto record = [](const std::string& features) {
    return test::tfrecord(test::example(features));
  };
  const std::string label = int_feature("label", {3});
  struct Case {
    const char* what;
    std::string file;
    AllSeen samples;
  };
  for (const auto& [what, file, samples] : {
           Case{"a usual name without an image",
                record(bytes_feature("image", "an id of the image, and longer than it") +
                       bytes_feature("photo", kJpeg) + label),
                {{kJpeg, 3}}},
           Case{"an image of a usual name after one of another",
                record(bytes_feature("thumbnail", kJpeg + "t") + bytes_feature("img", kJpeg) +
                       label),
                {{kJpeg, 3}}},
           Case{"an image that is named as keys are",
                record(bytes_feature("id", kJpeg) + bytes_feature("x", kJpeg + "x") + label),
                {{kJpeg, 3}}},
           Case{"labels of several names",
                record(bytes_feature("image", kJpeg) + label) +
                    record(bytes_feature("image", kJpeg) + int_feature("class", {4})) +
                    record(bytes_feature("image", kJpeg) + bytes_feature("label_name", "5")),
                {{kJpeg, 3}, {kJpeg, 4}, {kJpeg, 5}}},
           Case{
               "a first label without values",
               record(bytes_feature("image", kJpeg) + int_feature("image/class/label", {}) + label),
               {{kJpeg, 3}}},
           Case{"a feature that comes again",
                record(bytes_feature("image", "old") + bytes_feature("image", kJpeg) + label +
                       int_feature("label", {4})),
                {{kJpeg, 4}}},
       }) {
    CAPTURE(what);
    CHECK(seen_by_reader(file, "a.tfrecord") == samples);
    CHECK(records_seen_by_build(file) == samples);
  }
}

TEST_CASE("build does not take a thumbnail for pixels of a known shape",
          "[convert][source][tfrecord]") {
  const std::string file = test::tfrecord(
      test::example(bytes_feature("image_raw", std::string(12, 'p')) + int_feature("height", {2}) +
                    int_feature("width", {2}) + bytes_feature("thumbnail", kJpeg)));
  CHECK(scan_shard(test::bytes_of(file), "a.tfrecord").spec ==
        TensorSpec{DType::kUint8, Layout::kHwc, 2, 2, 3});
  CHECK_THROWS_AS(scan_records(test::bytes_of(file), "a.tfrecord", 0, {}), InvalidArgument);
}

TEST_CASE("build lists the shards of a folder as the reader does", "[convert][source]") {
  const test::TempFolder folder;
  for (const char* name : {"b-0.tar", "a-1.tar", "c.tfrec", "notes.txt", "a-1.idx"}) {
    test::write_text(folder / name, "x");
  }
  std::vector<std::filesystem::path> listed;
  for (const ListedShard& shard : list_shards(folder.path(), std::nullopt)) {
    listed.push_back(shard.path());
  }
  CHECK(listed == std::vector{folder / "a-1.tar", folder / "b-0.tar", folder / "c.tfrec"});
  CHECK(shards_in_folder(folder.path()) == listed);
  test::write_text(folder / "x-val-0.tar", "x");
  CHECK_THAT(test::message_of<InvalidArgument>([&] { (void)shards_in_folder(folder.path()); }),
             test::contains("several splits"));
}

TEST_CASE("names of files are judged by one table", "[convert][source]") {
  for (const char* name : {"x.tar", "x.tar.gz", "x.tgz", "x.tfrecord", "x.tfrecords", "x.tfrec",
                           "x.record", "x.tfrecord.gz", "x.h5", "x.hdf5", "x.he5"}) {
    CAPTURE(name);
    CHECK(without_shard_ending(name) == "x");
    CHECK(is_shard_name(name));
  }
  for (const char* name : {".tar", "x", "x.zip", "tar", "x.gz"}) {
    CAPTURE(name);
    CHECK(without_shard_ending(name) == name);
    CHECK_FALSE(is_shard_name(name));
  }
  CHECK(is_shard_name("x.tfrecord-00000-of-00002"));
  CHECK(format_of_name("x.tfrecord-00000-of-00002") == Format::kTfrecord);
  CHECK(format_of_name("a/x.he5") == Format::kHdf5);
  CHECK_FALSE(format_of_name("x.tar.zip"));
}

}  // namespace
}  // namespace precache
