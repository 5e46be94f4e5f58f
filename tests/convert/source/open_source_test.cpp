// SPDX-License-Identifier: Apache-2.0
#include "convert/source/open_source.hpp"

#include <sys/stat.h>
#include <zlib.h>

#include "convert/source/input_files.hpp"
#include "convert/source/source_path.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/example_writer.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::tar_entry;
using test::TempFolder;
using test::write_text;
using Texts = std::vector<std::string>;

const std::string kJpeg = "\xff\xd8\xff and so on";
const std::string kTarEnd(1024, '\0');
const fs::path kNoFolder;  // all samples are in shards

/// An unpacker and the folder of its copies.
struct Unpacking {
  TempFolder folder;
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<bool> stop = false;
  Unpacker unpacker{folder.path(), {bytes, stop}};

  Source open(const fs::path& path, const Labelling& labelling = {}) {
    return open_source(path, labelling, unpacker, {});
  }
  std::string refusal(const fs::path& path, const Labelling& labelling = {}) {
    return test::message_of<InvalidArgument>([&] { static_cast<void>(open(path, labelling)); });
  }
};

struct Sample {
  std::string path;
  std::int64_t label;
  std::string bytes;
  bool operator==(const Sample&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Sample& sample) {
  return out << sample.path << " " << sample.label << " " << sample.bytes;
}

/// All samples as a build reads them.
std::vector<Sample> samples_of(const Source& source) {
  const InputFiles files(kNoFolder, source);
  SampleReader reader(files);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    const ListedFile listed = source.listing[i];
    std::span<const std::byte> bytes;
    REQUIRE_FALSE(reader.read(listed, bytes));
    samples.push_back({std::string(listed.path), listed.label, test::text_of(bytes)});
  }
  return samples;
}

Texts paths_of(const Source& source) {
  Texts paths;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    paths.emplace_back(source.listing[i].path);
  }
  return paths;
}

std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string result(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

std::string gzipped(std::string_view text) { return deflated(text, 15 + 16); }

std::string class_folders(const std::string& top) {
  return tar_entry(top + "dog/2.jpg", "d2") + tar_entry(top + "cat/b.PNG", "cb") +
         tar_entry(top + "cat/notes.txt", "no label") + tar_entry(top + "cat/deep/a.jpeg", "ca") +
         tar_entry(top + "empty/", "", {.type = '5'}) + tar_entry(top + "cat/._b.PNG", "x") +
         tar_entry(top + "cat/l.jpg", "", {.type = '2'}) + kTarEnd;
}

const std::vector<Sample> kClassFolders{
    {"cat/b.PNG", 0, "cb"}, {"cat/deep/a.jpeg", 0, "ca"}, {"dog/2.jpg", 1, "d2"}};

TEST_CASE("a tar of class folders is listed as the folder", "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  // Prefixes that common tools put before names, and others without a meaning.
  const std::string dot = tar_entry("./", "", {.type = '5'});
  for (const std::string& tar : {class_folders(""), dot + class_folders("./"), class_folders("/"),
                                 class_folders("dataset/"), class_folders("./data/train//")}) {
    write_text(root / "x.tar", tar);
    const Source source = unpacking.open(root / "x.tar");
    CHECK(samples_of(source) == kClassFolders);
    CHECK(source.classes == Texts{"cat", "dog", "empty"});
    CHECK(source.ignored == IgnoredFiles{{".txt", 1}, {"._ of macOS", 1}, {"symbolic link", 1}});
    CHECK(source.key_rule == KeyRule::kPath);
    CHECK(source.unpacked_bytes() == 0);
  }
}

TEST_CASE("one class with folders in it differs from a folder around all",
          "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  const std::string entries = tar_entry("cat/a/1.jpg", "1") + tar_entry("cat/b/2.jpg", "2");
  write_text(root / "x.tar", entries + kTarEnd);
  CHECK(unpacking.open(root / "x.tar").classes == Texts{"a", "b"});
  write_text(root / "x.tar", tar_entry("./", "", {.type = '5'}) + entries + kTarEnd);
  const Source source = unpacking.open(root / "x.tar");
  CHECK(source.classes == Texts{"cat"});
  CHECK(paths_of(source) == Texts{"cat/a/1.jpg", "cat/b/2.jpg"});
}

TEST_CASE("a tar of a tar for each class is one of class folders", "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  const std::string dogs = tar_entry("2.jpg", "d2") + tar_entry("1.jpg", "d1") + kTarEnd;
  const std::string cats = tar_entry("./9.jpg", "c9") + kTarEnd;
  write_text(root / "x.tar", tar_entry("dog.tar", dogs) + tar_entry("cat.tar", cats) +
                                 tar_entry("no.tar", "no tar") + kTarEnd);
  const Source source = unpacking.open(root / "x.tar");
  CHECK(samples_of(source) == std::vector<Sample>{{"cat/9.jpg", 0, "c9"},
                                                  {"dog/1.jpg", 1, "d1"},
                                                  {"dog/2.jpg", 1, "d2"}});
  CHECK(source.ignored == IgnoredFiles{{".tar", 1}});
  write_text(root / "x.tar",
             tar_entry("bird/1.jpg", "b") + tar_entry("bird/dog.tar", dogs) + kTarEnd);
  CHECK(paths_of(unpacking.open(root / "x.tar")) == Texts{"bird/1.jpg"});
  write_text(root / "x.tar", tar_entry("dog.tar", dogs.substr(0, 700)) + kTarEnd);
  CHECK_THROWS_AS(unpacking.open(root / "x.tar"), CorruptData);
}

TEST_CASE("the last of a tar's files of one name counts", "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  write_text(root / "x.tar", tar_entry("a/1.jpg", "old") + tar_entry("b/2.jpg", "2") +
                                 tar_entry("./a/1.jpg", "new") + kTarEnd);
  const Source source = unpacking.open(root / "x.tar");
  CHECK(samples_of(source) == std::vector<Sample>{{"a/1.jpg", 0, "new"}, {"b/2.jpg", 1, "2"}});
  CHECK(source.ignored == IgnoredFiles{{"replaced by a later file of the same name", 1}});
}

TEST_CASE("samples of webdataset keep their order, keys and labels", "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  const std::string tar = tar_entry("k/2.cls", "7\n") + tar_entry("k/2.JPG", "two") +
                          tar_entry("k/1.left.jpg", "one") + tar_entry("k/1.right.jpg", "other") +
                          tar_entry("k/1.cls", "-3") + tar_entry("k/1.json", R"({"label": 9})");
  write_text(root / "x.tar", tar + kTarEnd);
  const Source source = unpacking.open(root / "x.tar");
  CHECK(samples_of(source) ==
        std::vector<Sample>{{"k/2.JPG", 7, "two"}, {"k/1.left.jpg", -3, "one"}});
  CHECK(source.classes.empty());
  CHECK(source.ignored == IgnoredFiles{{".json", 1}, {"further image of the same sample", 1}});
  const Keys keys(source.listing, source.key_rule);
  CHECK(keys.key(0) == "k/2");
  CHECK(keys.key(1) == "k/1");
  const Source right =
      unpacking.open(root / "x.tar", {.kind = Labelling::Kind::kNone, .image_key = "right.jpg"});
  CHECK(samples_of(right) == std::vector<Sample>{{"k/1.right.jpg", -1, "other"}});
}

TEST_CASE("hidden files and folders of a tar are ignored", "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  write_text(root / "x.tar", tar_entry("./", "", {.type = '5'}) +
                                 tar_entry("./.git/", "", {.type = '5'}) +
                                 tar_entry("./.git/a.jpg", "x") + tar_entry("./cat/.b.jpg", "x") +
                                 tar_entry("./cat/c.jpg", "c") + kTarEnd);
  const Source source = unpacking.open(root / "x.tar");
  CHECK(source.classes == Texts{"cat"});
  CHECK(samples_of(source) == std::vector<Sample>{{"cat/c.jpg", 0, "c"}});
  CHECK(source.ignored == IgnoredFiles{{"hidden", 2}});
}

TEST_CASE("labels of webdataset are integers or names in files next to the image",
          "[convert][source][tar]") {
  struct Case {
    std::string extension, first, second;
    Labelling labelling;
    Texts classes;
    std::int64_t first_label, second_label;
  };
  const std::vector<Case> cases{
      {"cls", "dog", " cat\r\n", {}, {"cat", "dog"}, 1, 0},
      {"txt", "5", "4", {}, {}, 5, 4},
      {"txt", "dog", "dog", {}, {"dog"}, 0, 0},
      {"txt", "dog", "cat", {.label_key = "txt"}, {"cat", "dog"}, 1, 0},
      {"json", R"({"x": 1, "cls": 3})", R"({"label": 2, "cls": 9})", {}, {}, 3, 2},
      {"json", R"({"class": "b"})", R"({"class": "a"})", {}, {"a", "b"}, 1, 0},
      {"json", R"({"who": 3, "label": 1})", R"({"who": 4})", {.label_key = "json.who"}, {}, 3, 4},
      {"label", "8", "9", {.label_key = "LABEL"}, {}, 8, 9},
      {"cls", "1", "0", {.classes = {"x", "y"}}, {"x", "y"}, 1, 0},
      {"cls", "y", "x", {.classes = {"x", "y", "z"}}, {"x", "y", "z"}, 1, 0},
  };
  const TempFolder root;
  Unpacking unpacking;
  for (const Case& one : cases) {
    CAPTURE(one.extension, one.first);
    write_text(root / "x.tar",
               tar_entry("0.jpg", "x") + tar_entry("0." + one.extension, one.first) +
                   tar_entry("1.jpg", "y") + tar_entry("1." + one.extension, one.second) + kTarEnd);
    const Source source = unpacking.open(root / "x.tar", one.labelling);
    CHECK(samples_of(source) ==
          std::vector<Sample>{{"0.jpg", one.first_label, "x"}, {"1.jpg", one.second_label, "y"}});
    CHECK(source.classes == one.classes);
    CHECK(source.ignored.empty());
  }
}

TEST_CASE("missing and invalid labels are refused", "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  const auto refusal = [&](const std::string& entries, const Labelling& labelling = {}) {
    write_text(root / "x.tar", entries + kTarEnd);
    return unpacking.refusal(root / "x.tar", labelling);
  };
  const std::string one = tar_entry("0.jpg", "x") + tar_entry("0.cls", "1");
  CHECK_THAT(refusal(one + tar_entry("1.jpg", "x")), test::contains("'1.jpg' in"));
  CHECK_THAT(refusal(one + tar_entry("1.jpg", "x") + tar_entry("1.cls", "dog")),
             test::contains("is a name, but '0.jpg' in"));
  CHECK_THAT(refusal(one, {.classes = {"only"}}), test::contains("label 1 is not below"));
  CHECK_THAT(refusal(tar_entry("0.jpg", "x")), test::contains("is directly in `source`"));
  const std::string caption(300, 'c');
  CHECK_THAT(refusal(tar_entry("0.jpg", "x") + tar_entry("0.txt", caption)),
             test::contains("1 of 1 .txt files hold several lines or more than 256 bytes"));
  CHECK_THAT(refusal(tar_entry("0.npy", "x") + tar_entry("0.cls", "1")),
             test::contains("contains arrays (.npy), not images"));
  CHECK_THAT(refusal(tar_entry("0.webp", "x")), test::contains("there are no images"));
}

TEST_CASE("several shards are one source in the order given", "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  for (int i = 0; i < 3; ++i) {
    const std::string key = std::to_string(9 - i);
    write_text(root / ("s-" + std::to_string(i) + ".tar"),
               tar_entry(key + ".jpg", key) + tar_entry(key + ".cls", key) + kTarEnd);
  }
  const std::vector<Sample> all{{"9.jpg", 9, "9"}, {"8.jpg", 8, "8"}, {"7.jpg", 7, "7"}};
  CHECK(samples_of(unpacking.open(root / "s-*.tar")) == all);
  CHECK(samples_of(unpacking.open(root / "s-{0..2}.tar")) == all);
  CHECK(samples_of(unpacking.open(root.path())) == all);
  CHECK(paths_of(unpacking.open(root / "s-{2,0}.tar")) == Texts{"7.jpg", "9.jpg"});
  CHECK_THROWS_AS(unpacking.open(root / "s-{0..3}.tar"), IoError);
  write_text(root / "val-0.tar", kTarEnd);
  CHECK_THAT(unpacking.refusal(root.path()), test::contains("shards of several splits"));
  write_text(root / "s-3.tar", test::tfrecord(test::example(test::bytes_feature("image", kJpeg))));
  CHECK_THAT(unpacking.refusal(root / "s-*.tar"), test::contains("a tfrecord file"));
}

TEST_CASE("a CSV file labels samples of shards by their paths", "[convert][source][tar]") {
  const TempFolder root;
  Unpacking unpacking;
  write_text(root / "x.tar", class_folders(""));
  write_text(root / "l.csv", "dog/2.jpg,5\n./cat/b.PNG,6\n");
  const Labelling csv{.kind = Labelling::Kind::kCsv, .csv = root / "l.csv"};
  CHECK(samples_of(unpacking.open(root / "x.tar", csv)) ==
        std::vector<Sample>{{"cat/b.PNG", 6, "cb"}, {"dog/2.jpg", 5, "d2"}});
  write_text(root / "l.csv", "dog/3.jpg,5\n");
  CHECK_THAT(unpacking.refusal(root / "x.tar", csv), test::contains("there is no 'dog/3.jpg' in"));
}

TEST_CASE("compressed shards are unpacked", "[convert][source][unpack]") {
  const TempFolder root;
  Unpacking unpacking;
  const std::string tar = class_folders("");
  const std::string half = tar.substr(0, 3000);
  for (const std::string& packed :
       {gzipped(tar), deflated(tar, 15), gzipped(half) + gzipped(tar.substr(3000)),
        gzipped(tar) + std::string(700, '\0')}) {
    Unpacking fresh;
    write_text(root / "x.tar.gz", packed);
    const Source source = fresh.open(root / "x.tar.gz");
    CHECK(samples_of(source) == kClassFolders);
    CHECK(source.unpacked_bytes() == tar.size());
    CHECK(fresh.bytes == tar.size());
    CHECK_FALSE(source.shards[0].is_stream());
    CHECK(source.shards[0].given.bytes == packed.size());
  }
}

TEST_CASE("a compressed shard that is cut anywhere or has trailing data is corrupt",
          "[convert][source][unpack][malformed]") {
  const TempFolder root;
  const std::string packed = gzipped(class_folders(""));
  for (std::size_t size = 18; size < packed.size(); size += 7) {
    Unpacking unpacking;
    write_text(root / "x.tar.gz", packed.substr(0, size));
    CAPTURE(size);
    REQUIRE_THROWS_AS(unpacking.open(root / "x.tar.gz"), CorruptData);
  }
  std::string broken = packed;
  broken[broken.size() - 6] = static_cast<char>(broken[broken.size() - 6] ^ 1);  // the CRC
  for (const std::string& text : {broken, packed + "x", packed + std::string(3, '\0') + packed}) {
    Unpacking unpacking;
    write_text(root / "x.tar.gz", text);
    CHECK_THROWS_AS(unpacking.open(root / "x.tar.gz"), CorruptData);
  }
}

TEST_CASE("copies are removed with the unpacker unless they are kept",
          "[convert][source][unpack]") {
  const TempFolder root;
  const TempFolder folder;
  write_text(root / "x.tgz", gzipped(class_folders("")));
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<bool> stop = false;
  {
    Unpacker unpacker(folder.path(), {bytes, stop});
    static_cast<void>(open_source(root / "x.tgz", {}, unpacker, {}));
    CHECK_FALSE(fs::is_empty(folder.path()));
  }
  CHECK(fs::is_empty(folder.path()));
  {
    Unpacker unpacker(folder.path(), {bytes, stop});
    static_cast<void>(open_source(root / "x.tgz", {}, unpacker, {}));
    unpacker.keep();
  }
  CHECK_FALSE(fs::is_empty(folder.path()));
  stop = true;
  Unpacker unpacker(folder.path(), {bytes, stop});
  CHECK_THROWS_AS(open_source(root / "x.tgz", {}, unpacker, {}), UnpackingStopped);
}

std::string record(std::string_view features) { return test::tfrecord(test::example(features)); }

TEST_CASE("records of encoded images are known by common names or by content",
          "[convert][source][tfrecord]") {
  struct Case {
    std::string image, label, key;
  };
  const TempFolder root;
  Unpacking unpacking;
  for (const Case& names :
       std::vector<Case>{{"image/encoded", "image/class/label", "image/filename"},
                         {"image", "label", "key"},
                         {"image_raw", "label", "id"},
                         {"jpg", "cls", "__key__"},
                         {"no known name", "label", "key"}}) {
    CAPTURE(names.image);
    const auto make = [&](std::int64_t label, const std::string& key) {
      return record(test::bytes_feature("text", "a longer text than any image here is, surely") +
                    test::bytes_feature(names.image, kJpeg + key) +
                    test::int_feature(names.label, {label}) + test::bytes_feature(names.key, key));
    };
    write_text(root / "x.tfrecord", make(1000, "b/1.JPEG") + make(1, "a.b"));
    const Source source = unpacking.open(root / "x.tfrecord");
    CHECK(samples_of(source) ==
          std::vector<Sample>{{"b/1.JPEG", 1000, kJpeg + "b/1.JPEG"}, {"a.b", 1, kJpeg + "a.b"}});
    const Keys keys(source.listing, source.key_rule);
    CHECK(keys.key(0) == "b/1");
    CHECK(keys.key(1) == "a_b");
  }
}

TEST_CASE("records may have names for labels, no keys, or be images themselves",
          "[convert][source][tfrecord]") {
  const TempFolder root;
  Unpacking unpacking;
  const auto path = root / "train-00000-of-00002.tfrecord";
  write_text(path,
             record(test::bytes_feature("image", kJpeg) + test::bytes_feature("label", "dog")) +
                 record(test::bytes_feature("image", kJpeg) + test::bytes_feature("label", "cat")));
  const Source source = unpacking.open(path);
  CHECK(source.classes == Texts{"cat", "dog"});
  CHECK(paths_of(source) ==
        Texts{"train-00000-of-00002/00000000", "train-00000-of-00002/00000001"});
  CHECK(source.listing[0].label == 1);
  write_text(path, test::tfrecord(kJpeg) + test::tfrecord(kJpeg + "2"));
  const Source raw = unpacking.open(path, {.kind = Labelling::Kind::kNone});
  CHECK(samples_of(raw)[1].bytes == kJpeg + "2");
  CHECK_THAT(unpacking.refusal(path),
             test::contains("have no feature with a usual name for labels"));
}

TEST_CASE("records without images or labels are refused", "[convert][source][tfrecord]") {
  const TempFolder root;
  Unpacking unpacking;
  const auto path = root / "x.tfrecord";
  const auto refusal = [&](const std::string& records, const Labelling& labelling = {}) {
    write_text(path, records);
    return unpacking.refusal(path, labelling);
  };
  const std::string image = test::bytes_feature("image", kJpeg);
  const std::string label = test::int_feature("label", {1});
  CHECK_THAT(refusal(record(test::bytes_feature("image", "pixels") + label)),
             test::contains("holds no JPEG or PNG file"));
  CHECK_THAT(refusal(test::tfrecord("\x07 no example")),
             test::contains("is not a tf.train.Example"));
  CHECK_THAT(refusal(record(image + label) + record(image)), test::contains("record 1 of"));
  CHECK_THAT(refusal(record(image + test::int_feature("label", {1, 2}))),
             test::contains("record 0 of"));
  CHECK_THAT(refusal(record(image + label), {.image_key = "photo"}),
             test::contains("have no feature 'photo'"));
  CHECK_THAT(refusal(record(image + label), {.label_key = "wrong"}), test::contains("in 'wrong'"));
  CHECK_THAT(refusal(""), test::contains("there are no images"));
}

TEST_CASE("a record whose bytes changed is corrupt when it is read",
          "[convert][source][tfrecord][malformed]") {
  const TempFolder root;
  Unpacking unpacking;
  const auto path = root / "x.tfrecord";
  const std::string whole =
      record(test::bytes_feature("image", kJpeg) + test::int_feature("label", {1}));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x40);
    write_text(path, whole + broken);
    CAPTURE(at);
    const auto read = [&] {
      const Source source = unpacking.open(path);
      const InputFiles files(kNoFolder, source);
      SampleReader reader(files);
      std::span<const std::byte> bytes;
      for (std::size_t i = 0; i < source.listing.size(); ++i) {
        static_cast<void>(reader.read(source.listing[i], bytes));
      }
    };
    // Names and labels are looked at before CRCs are.
    bool is_found = false;
    try {
      read();
    } catch (const CorruptData& error) {
      is_found = error.path() == path && error.offset() >= whole.size();
    } catch (const InvalidArgument&) {
      is_found = true;
    }
    REQUIRE(is_found);
  }
}

TEST_CASE("a shard that changes while it is read is detected", "[convert][source]") {
  const TempFolder root;
  Unpacking unpacking;
  write_text(root / "x.tar", class_folders(""));
  const Source source = unpacking.open(root / "x.tar");
  const InputFiles files(kNoFolder, source);
  SampleReader reader(files);
  std::span<const std::byte> bytes;
  const auto read = [&] { static_cast<void>(reader.read(source.listing[0], bytes)); };
  read();
  write_text(root / "x.tar", class_folders("") + "more");
  CHECK_THAT(test::message_of<IoError>(read), test::contains("the source has changed"));
}

TEST_CASE("missing shards, pipes and folders are told apart", "[convert][source]") {
  const TempFolder root;
  write_text(root / "a/x.jpg", "x");
  write_text(root / "b.tar", kTarEnd);
  REQUIRE(::mkfifo((root / "pipe").c_str(), 0600) == 0);
  using Kind = SourcePath::Kind;
  CHECK(resolve_source("-").kind == Kind::kStream);
  CHECK(resolve_source(root / "pipe").kind == Kind::kStream);
  CHECK(resolve_source(root / "a").kind == Kind::kFolder);
  CHECK(resolve_source(root / "b.tar").kind == Kind::kShards);
  CHECK_THROWS_AS(resolve_source(root / "c.tar"), IoError);
  CHECK_THROWS_AS(resolve_source(root / "c*.tar"), InvalidArgument);
  CHECK_THROWS_AS(resolve_source(root / "{a,b.tar}"), InvalidArgument);
}

}  // namespace
}  // namespace precache
