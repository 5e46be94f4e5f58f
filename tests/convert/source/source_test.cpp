// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "convert/source/folder_walk.hpp"
#include "convert/source/input_files.hpp"
#include "convert/source/open_source.hpp"
#include "formats/shard/file_names.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using test::write_text;
using Texts = std::vector<std::string>;

const Labelling kByFolder{};
const Labelling kNone{.kind = Labelling::Kind::kNone};

Labelling by_csv(const fs::path& csv, Texts classes = {}) {
  return {.kind = Labelling::Kind::kCsv, .csv = csv, .classes = std::move(classes)};
}

/// Opens a source that needs no unpacking.
Source open_source(const fs::path& root, const Labelling& labelling) {
  std::atomic<std::uint64_t> bytes = 0;
  const std::atomic<bool> stop = false;
  Unpacker unpacker(fs::temp_directory_path(), {bytes, stop});
  return precache::open_source(root, labelling, unpacker, {});
}

std::vector<std::pair<std::string, std::int64_t>> labels_of(const Source& source) {
  std::vector<std::pair<std::string, std::int64_t>> labels;
  for (std::size_t i = 0; i < source.listing.size(); ++i) {
    labels.emplace_back(source.listing[i].path, source.listing[i].label);
  }
  return labels;
}

using Labels = std::vector<std::pair<std::string, std::int64_t>>;

/// The message with which open_source() refuses a request.
std::string refusal(const fs::path& root, const Labelling& labelling) {
  return test::message_of<InvalidArgument>(
      [&] { static_cast<void>(open_source(root, labelling)); });
}

TEST_CASE("images are known by their extension in any case", "[convert][source]") {
  for (const char* file :
       {"a.jpg", "a.JPEG", "a.Jpe", "a.jfif", "a.mpo", "a.PNG", ".png", "a.b.jpg"}) {
    CHECK(has_image_extension(file));
  }
  for (const char* file : {"a", "jpg", "a.gif", "a.jpg.txt", "a.jp", "", "a.", "a.jpgx", "jpg/a"}) {
    CHECK_FALSE(has_image_extension(file));
  }
}

TEST_CASE("classes are the folders below the source in sorted order", "[convert][source]") {
  const TempFolder root;
  write_text(root / "dog/1.jpg", "x");
  write_text(root / "cat/b.png", "xy");
  write_text(root / "cat/deep/er/a.JPG", "");
  write_text(root / "Zebra/z.jpg", "x");
  write_text(root / "cat/notes.txt", "x");
  write_text(root / "cat/README", "x");
  write_text(root / "cat/._b.png", "what macOS leaves on foreign disks");
  fs::create_directory(root / "empty");
  const Source source = open_source(root.path(), kByFolder);
  CHECK(source.classes == Texts{"Zebra", "cat", "dog", "empty"});
  CHECK(labels_of(source) ==
        Labels{{"Zebra/z.jpg", 0}, {"cat/b.png", 1}, {"cat/deep/er/a.JPG", 1}, {"dog/1.jpg", 2}});
  CHECK(source.ignored == IgnoredFiles{{".txt", 1}, {"._ of macOS", 1}, {"no extension", 1}});
  struct stat status {};
  REQUIRE(::stat((root / "cat/b.png").c_str(), &status) == 0);
  CHECK(source.listing[1].size == 2);
  CHECK(source.listing[1].mtime_ns ==
        status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
}

TEST_CASE("fixed classes give the numbers and an unknown one is refused", "[convert][source]") {
  const TempFolder root;
  write_text(root / "dog/1.jpg", "x");
  write_text(root / "cat/2.jpg", "x");
  const Source source = open_source(root.path(), {.classes = {"dog", "bird", "cat"}});
  CHECK(source.classes == Texts{"dog", "bird", "cat"});
  CHECK(labels_of(source) == Labels{{"cat/2.jpg", 2}, {"dog/1.jpg", 0}});
  CHECK_THAT(refusal(root.path(), {.classes = {"dog"}}),
             test::contains("the class 'cat' is not known"));
}

TEST_CASE("images without a class are refused unless no labels are wanted", "[convert][source]") {
  const TempFolder root;
  write_text(root / "cat/1.jpg", "x");
  write_text(root / "loose.jpg", "x");
  CHECK_THAT(refusal(root.path(), kByFolder), test::contains("loose.jpg' is directly in `source`"));
  const Source source = open_source(root.path(), kNone);
  CHECK(source.classes.empty());
  CHECK(labels_of(source) == Labels{{"cat/1.jpg", -1}, {"loose.jpg", -1}});
}

TEST_CASE("a source without images is refused", "[convert][source]") {
  const TempFolder root;
  CHECK_THAT(refusal(root.path(), kByFolder), test::contains("no images"));
  CHECK_THROWS_AS(open_source(root / "missing", kByFolder), IoError);
}

TEST_CASE("a file that is not a shard of images is refused as a source", "[convert][source]") {
  const TempFolder root;
  write_text(root / "file", "x");
  CHECK_THROWS_AS(open_source(root / "file", kByFolder), Unsupported);
  write_text(root / "1.png", "\x89PNG\r\n\x1a\n");
  CHECK_THAT(refusal(root / "1.png", kByFolder),
             test::contains("is a PNG image, not a shard of images"));
}

TEST_CASE("class names that are not UTF-8 are escaped", "[convert][source]") {
  const TempFolder root;
  write_text(root / "\xff/1.jpg", "x");
  const Source source = open_source(root.path(), kByFolder);
  CHECK(source.classes == Texts{"%FF"});
  CHECK(labels_of(source) == Labels{{"\xff/1.jpg", 0}});
  write_text(root / "%FF/1.jpg", "x");
  CHECK_THAT(refusal(root.path(), kByFolder),
             test::contains("the same name after conversion to UTF-8"));
}

TEST_CASE("links are followed but never in a circle", "[convert][source]") {
  const TempFolder root;
  const TempFolder elsewhere;
  write_text(elsewhere / "x/1.jpg", "x");
  write_text(elsewhere / "photo", "x");
  write_text(root / "cat/1.jpg", "x");
  fs::create_directory_symlink(elsewhere / "x", root / "linked");
  fs::create_directory_symlink(root.path(), root / "cat/loop");
  fs::create_directory_symlink("..", root / "cat/up");
  fs::create_symlink(elsewhere / "photo", root / "cat/2.jpg");
  fs::create_symlink(elsewhere / "photo", root / "cat/plain");
  fs::create_symlink(elsewhere / "gone", root / "cat/dangling.txt");
  const Source source = open_source(root.path(), kByFolder);
  CHECK(labels_of(source) == Labels{{"cat/1.jpg", 0}, {"cat/2.jpg", 0}, {"linked/1.jpg", 1}});
  CHECK(source.ignored.at("link to a folder above it") == 2);
  CHECK(source.ignored.at("dangling link") == 1);
  fs::create_symlink(elsewhere / "gone", root / "cat/dangling.jpg");
  CHECK_THROWS_AS(open_source(root.path(), kByFolder), IoError);
}

TEST_CASE("two class folders may be links to one folder", "[convert][source]") {
  const TempFolder root;
  const TempFolder elsewhere;
  write_text(elsewhere / "deep/1.jpg", "x");
  fs::create_directory_symlink(elsewhere.path(), root / "cat");
  fs::create_directory_symlink(elsewhere.path(), root / "pet");
  CHECK(labels_of(open_source(root.path(), kByFolder)) ==
        Labels{{"cat/deep/1.jpg", 0}, {"pet/deep/1.jpg", 1}});
}

TEST_CASE("links that fan out are refused", "[convert][source][malformed]") {
  const TempFolder root;
  for (int i = 0; i < 12; ++i) fs::create_directory(root / std::to_string(i));
  for (int i = 0; i < 11; ++i) {
    for (int link = 0; link < 4; ++link) {  // four million ways from the first folder to the last
      fs::create_directory_symlink(root / std::to_string(i + 1),
                                   root / std::to_string(i) / std::to_string(link));
    }
  }
  write_text(root / "11/1.jpg", "x");
  CHECK_THAT(refusal(root.path(), kByFolder), test::contains("more than 10000 times"));
}

TEST_CASE("hidden files and folders are ignored", "[convert][source]") {
  const TempFolder root;
  write_text(root / "cat/1.jpg", "x");
  write_text(root / "cat/.1.jpg.part.jpg", "x");
  write_text(root / "cat/.cache/2.jpg", "x");
  write_text(root / ".git/objects/3.jpg", "x");
  write_text(root / ".DS_Store", "x");
  const Source source = open_source(root.path(), kByFolder);
  CHECK(source.classes == Texts{"cat"});
  CHECK(labels_of(source) == Labels{{"cat/1.jpg", 0}});
  CHECK(source.ignored == IgnoredFiles{{"hidden", 4}});
}

TEST_CASE("a link to a file without extension is counted as such", "[convert][source]") {
  const TempFolder root;
  write_text(root / "cat/1.jpg", "x");
  write_text(root / "cat/plain", "x");
  fs::create_symlink("plain", root / "cat/link");
  CHECK(open_source(root.path(), kByFolder).ignored == IgnoredFiles{{"no extension", 2}});
}

TEST_CASE("files that are not regular are ignored and not opened", "[convert][source]") {
  const TempFolder root;
  write_text(root / "cat/1.jpg", "x");
  fs::create_directory(root / "cat/folder.jpg");
  REQUIRE(::mkfifo((root / "cat/pipe.jpg").c_str(), 0600) == 0);  // opening it would block
  const Source source = open_source(root.path(), kByFolder);
  CHECK(labels_of(source) == Labels{{"cat/1.jpg", 0}});
  CHECK(source.ignored.at("not a regular file") == 1);
}

TEST_CASE("csv labels take the named files and no others", "[convert][source][csv]") {
  const TempFolder root;
  write_text(root / "b/1.jpg", "x");
  write_text(root / "a/2.jpg", "x");
  write_text(root / "a/3.jpg", "x");
  write_text(root / "l.csv", "path,label\nb/1.jpg,dog\n./a//2.jpg,cat\n");
  const Source source = open_source(root.path(), by_csv(root / "l.csv"));
  CHECK(source.classes == Texts{"cat", "dog"});
  CHECK(labels_of(source) == Labels{{"a/2.jpg", 0}, {"b/1.jpg", 1}});
  CHECK(labels_of(open_source(root.path(), by_csv(root / "l.csv", {"dog", "cat"}))) ==
        Labels{{"a/2.jpg", 1}, {"b/1.jpg", 0}});
  CHECK_THAT(refusal(root.path(), by_csv(root / "l.csv", {"dog"})), test::contains("line 3"));
}

TEST_CASE("csv labels that are all numbers are taken as they are", "[convert][source][csv]") {
  const TempFolder root;
  write_text(root / "1.jpg", "x");
  write_text(root / "2.jpg", "x");
  write_text(root / "l.csv", "1.jpg,-7\n2.jpg,9223372036854775807\n");
  const Source source = open_source(root.path(), by_csv(root / "l.csv"));
  CHECK(source.classes.empty());
  CHECK(labels_of(source) == Labels{{"1.jpg", -7}, {"2.jpg", INT64_MAX}});
  CHECK_THAT(refusal(root.path(), by_csv(root / "l.csv", {"x", "y"})), test::contains("line 1"));
  // A mixture is a mistake, unless the names are fixed.
  write_text(root / "l.csv", "1.jpg,1\n2.jpg,one\n");
  CHECK_THAT(refusal(root.path(), by_csv(root / "l.csv")),
             test::contains("line 2: labels mix names and numbers: 'one' is a name"));
  CHECK(labels_of(open_source(root.path(), by_csv(root / "l.csv", {"one", "1"}))) ==
        Labels{{"1.jpg", 1}, {"2.jpg", 0}});
}

TEST_CASE("csv rows that name no file below the source are refused",
          "[convert][source][csv][malformed]") {
  const TempFolder root;
  write_text(root / "src/1.jpg", "x");
  write_text(root / "2.jpg", "x");
  for (const auto& [row, words] : std::vector<std::pair<std::string, std::string>>{
           {"missing.jpg,1", "line 1: there is no"},
           {"1.jpg/2.jpg,1", "line 1: there is no"},
           {"../2.jpg,1", "not below `source`"},
           {"a/../../2.jpg,1", "not below `source`"},
           {"/etc/passwd,1", "not below `source`"},
           {".,1", "not a regular file"},
           {"1.jpg,1\n./1.jpg,1", "line 2: './1.jpg' is already in line 1"}}) {
    CAPTURE(row);
    write_text(root / "l.csv", row + "\n");
    CHECK_THAT(refusal(root / "src", by_csv(root / "l.csv")), test::contains(words));
  }
  write_text(root / "l.csv", "path,label\n");
  CHECK_THAT(refusal(root / "src", by_csv(root / "l.csv")), test::contains("no images"));
}

TEST_CASE("csv rows may have absolute paths below the source", "[convert][source][csv]") {
  const TempFolder root;
  write_text(root / "src/a/1.jpg", "x");
  write_text(root / "2.jpg", "x");
  fs::create_directory_symlink(root / "src", root / "link");
  const auto open = [&](const fs::path& source, const fs::path& named) {
    write_text(root / "l.csv", named.string() + ",7\n");
    return labels_of(open_source(source, by_csv(root / "l.csv")));
  };
  const Labels expected{{"a/1.jpg", 7}};
  CHECK(open(root / "src", root / "src/a/1.jpg") == expected);
  CHECK(open(root / "src/", root / "src/./a//1.jpg") == expected);
  CHECK(open(fs::relative(root / "src"), root / "src/a/1.jpg") == expected);
  CHECK(open(root / "link", root / "link/a/1.jpg") == expected);
  CHECK(open(root / "link", fs::canonical(root / "src") / "a/1.jpg") == expected);
  write_text(root / "l.csv", (root / "src/../2.jpg").string() + ",7\n");
  CHECK_THAT(refusal(root / "src", by_csv(root / "l.csv")), test::contains("not below `source`"));
}

TEST_CASE("a header names the columns of paths and labels", "[convert][source][csv]") {
  const TempFolder root;
  write_text(root / "1.jpg", "x");
  write_text(root / "l.csv", "id,image,breed\n9,1.jpg,dog\n");
  Labelling labelling = by_csv(root / "l.csv");
  labelling.path_column = "image";
  labelling.label_column = "breed";
  const Source source = open_source(root.path(), labelling);
  CHECK(source.classes == Texts{"dog"});
  CHECK(labels_of(source) == Labels{{"1.jpg", 0}});
}

TEST_CASE("labels come from paths by a regular expression", "[convert][source]") {
  const TempFolder root;
  for (const char* file : {"dog_1.jpg", "cat_2.jpg", "more/cat_10.jpg"}) {
    write_text(root / file, "x");
  }
  const auto by_regex = [](const std::string& regex, Texts classes = {}) {
    Labelling labelling{.kind = Labelling::Kind::kRegex, .classes = std::move(classes)};
    labelling.regex = regex;
    return labelling;
  };
  const Source names = open_source(root.path(), by_regex("([a-z]+)_[0-9]+"));
  CHECK(names.classes == Texts{"cat", "dog"});
  CHECK(labels_of(names) == Labels{{"cat_2.jpg", 0}, {"dog_1.jpg", 1}, {"more/cat_10.jpg", 0}});
  const Source numbers = open_source(root.path(), by_regex("_([0-9]+)\\.jpg$"));
  CHECK(numbers.classes.empty());
  CHECK(labels_of(numbers) == Labels{{"cat_2.jpg", 2}, {"dog_1.jpg", 1}, {"more/cat_10.jpg", 10}});
  CHECK(labels_of(open_source(root.path(), by_regex("([a-z]+)_", {"dog", "cat"})))[1].second == 0);

  CHECK_THAT(refusal(root.path(), by_regex("(dog)")), test::contains("finds no label in"));
  CHECK_THAT(refusal(root.path(), by_regex("(x*)")), test::contains("finds no label in"));
  CHECK_THAT(refusal(root.path(), by_regex("[a-z]+")), test::contains("no group in parentheses"));
  CHECK_THAT(refusal(root.path(), by_regex("(")), test::contains("not a regular expression"));
}

TEST_CASE("options for labels that cannot be combined are refused", "[convert][source]") {
  const auto refused = [](const ImageJobOptions& options) {
    return test::message_of<InvalidArgument>([&] { static_cast<void>(parse_labelling(options)); });
  };
  ImageJobOptions options;
  options.label_column = "breed";
  CHECK_THAT(refused(options), test::contains("need a CSV file in `labels`"));
  options.label_column = "";
  options.label_regex = "(.)";
  CHECK(parse_labelling(options).kind == Labelling::Kind::kRegex);
  options.labels = "none";
  CHECK_THAT(refused(options), test::contains("`label_regex` cannot be combined with `labels`"));
}

TEST_CASE("a source without images says what else is there", "[convert][source]") {
  const TempFolder root;
  for (const char* file : {"a.txt", "b.txt", "c.md"}) write_text(root / file, "x");
  for (const char* link : {"l1", "l2"}) fs::create_symlink(root / "gone", root / link);
  try {
    static_cast<void>(open_source(root.path(), kByFolder));
    FAIL("it has no images");
  } catch (const InvalidArgument& error) {
    CHECK_THAT(error.hint(), test::contains("1 .md file, 2 .txt files, 2 dangling links."));
  }
}

TEST_CASE("csv rows may name files that begin with two dots", "[convert][source][csv]") {
  const TempFolder root;
  write_text(root / "..a.jpg", "x");
  write_text(root / "l.csv", "..a.jpg,1\n");
  CHECK(labels_of(open_source(root.path(), by_csv(root / "l.csv"))) == Labels{{"..a.jpg", 1}});
}

TEST_CASE("a file is read as it was listed or the job ends", "[convert][source]") {
  const TempFolder root;
  write_text(root / "cat/1.jpg", "some bytes");
  write_text(root / "cat/2.jpg", "");
  const Source source = open_folder(root.path(), kByFolder);
  const Listing& listing = source.listing;
  const InputFiles files(root.path(), source);
  SampleReader reader(files);
  std::span<const std::byte> bytes;
  CHECK_FALSE(reader.read(listing[0], bytes));
  CHECK(test::text_of(bytes) == "some bytes");
  CHECK_FALSE(reader.read(listing[1], bytes));
  CHECK(bytes.empty());

  const auto fails = [&] {
    return test::message_of<IoError>([&] { static_cast<void>(reader.read(listing[0], bytes)); });
  };
  const auto time = fs::last_write_time(root / "cat/1.jpg");
  fs::last_write_time(root / "cat/1.jpg", time + std::chrono::nanoseconds(1));
  CHECK_THAT(fails(), test::contains("changed"));
  write_text(root / "cat/1.jpg", "more bytes than before");
  fs::last_write_time(root / "cat/1.jpg", time);
  CHECK_THAT(fails(), test::contains("changed"));
  fs::remove(root / "cat/1.jpg");
  CHECK_THAT(fails(), test::contains("changed"));
  REQUIRE(::mkfifo((root / "cat/1.jpg").c_str(), 0600) == 0);
  CHECK_THAT(fails(), test::contains("changed"));
}

TEST_CASE("a file too large to be an image is rejected unread", "[convert][source]") {
  const TempFolder root;
  const Source source;
  const InputFiles files(root.path(), source);
  SampleReader reader(files);
  std::span<const std::byte> bytes;
  const auto rejection = reader.read({"missing.jpg", std::uint64_t{1} << 40, 0, 0}, bytes);
  REQUIRE(rejection);
  CHECK(rejection->stage == RejectionStage::kLimit);
}

}  // namespace
}  // namespace precache
