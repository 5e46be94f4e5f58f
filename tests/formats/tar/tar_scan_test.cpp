// SPDX-License-Identifier: Apache-2.0
#include "formats/os/file.hpp"
#include "formats/shard/scan.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/webdataset.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/corpora.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/indexes.hpp"
#include "tests/support/tar_writer.hpp"

namespace precache {
namespace {

using test::key_of;
using test::kTarEnd;
using test::npy_file;
using test::pax_header;
using test::pax_record;
using test::tar_entry;
using test::TarHeader;

const std::string kDict = "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2, 2), }";

ShardIndex scan(const std::string& archive) { return test::scan_text(archive, "a.tar"); }

std::vector<std::string> names_of(const std::string& archive) {
  const auto bytes = test::bytes_of(archive);
  tar::EntryCursor cursor(bytes, "a.tar");
  std::vector<std::string> names;
  while (const auto entry = cursor.next()) names.emplace_back(entry->name);
  return names;
}

std::vector<std::string> keys_of(const ShardIndex& index) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < index.places.size(); ++i) keys.push_back(key_of(index, i));
  return keys;
}

using Texts = std::vector<std::string>;

TEST_CASE("tar entries have the names of all dialects", "[formats][tar]") {
  const std::string name(100, 'n');
  CHECK(names_of(tar_entry("a", "") + kTarEnd) == Texts{"a"});
  CHECK(names_of(tar_entry(name, "", {.prefix = "p/q"})) == Texts{"p/q/" + name});
  // GNU tar stores other fields there, version 7 none.
  CHECK(names_of(tar_entry("a", "", {.magic = test::kGnuMagic, .prefix = "p"})) == Texts{"a"});
  CHECK(names_of(tar_entry("a", "", {.type = '\0', .magic = ""})) == Texts{"a"});
  const std::string longer(300, 'l');
  CHECK(names_of(pax_header(pax_record("mtime", "1.5") + pax_record("path", longer)) +
                 tar_entry("cut", "x") + tar_entry("b", "")) == Texts{longer, "b"});
  CHECK(names_of(tar_entry("././@LongLink", longer + '\0', {.type = 'L'}) + tar_entry("cut", "x") +
                 tar_entry("b", "")) == Texts{longer, "b"});
  CHECK(names_of(pax_header(pax_record("path", "g"), 'g') + tar_entry("a", "") +
                 pax_header(pax_record("path", "x")) + tar_entry("b", "") + tar_entry("c", "")) ==
        Texts{"g", "x", "g"});
}

TEST_CASE("tar entries have the sizes of all dialects", "[formats][tar]") {
  const auto first = [](const std::string& archive) {
    const auto bytes = test::bytes_of(archive);
    return *tar::EntryCursor(bytes, "a.tar").next();
  };
  const std::string data(700, 'd');
  CHECK(first(tar_entry("a", data)).size == 700);
  CHECK(first(tar_entry("a", data)).end == 512 + 1024);
  CHECK(first(tar_entry("a", data, {.size = "      1274 "})).size == 700);
  CHECK(first(tar_entry("a", data, {.size = "00000001274 "})).size == 700);
  CHECK(first(tar_entry("a", data, {.size = std::string("\x80\0\0\0\0\0\0\0\0\0\x02\xbc", 12)}))
            .size == 700);
  const tar::Entry pax =
      first(pax_header(pax_record("size", "700")) + tar_entry("a", data, {.size = "00000000000"}));
  CHECK(pax.size == 700);
  CHECK(pax.begin == 0);
  CHECK(pax.data == 1536);
  // No data follows links and folders, whatever their size field says.
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    CHECK(first(tar_entry("a", "", {.type = type, .size = "00000001274"})).size == 0);
  }
  CHECK(first(tar_entry("a/", "", {.type = '\0', .size = "00000001274"})).type ==
        tar::EntryType::kDirectory);
}

TEST_CASE("tar entries have a CRC only if both device numbers hold half of it", "[formats][tar]") {
  const auto crc_of = [](const std::string& major, const std::string& minor) {
    std::string entry = tar_entry("a", "data");
    entry.replace(329, major.size(), major);
    entry.replace(337, minor.size(), minor);
    test::set_tar_checksum(entry);
    entry[155] = ' ';  // the way precache ends a checksum
    const auto bytes = test::bytes_of(entry);
    return tar::EntryCursor(bytes, "a.tar").next()->data_crc;
  };
  CHECK(crc_of("7104653", "7146757") == 0x89abcdefU);
  CHECK(crc_of("7000000", "7000000") == 0U);
  CHECK(crc_of("7177777", "7177777") == 0xffffffffU);
  for (const std::string& other :
       {std::string("0000000"), std::string(), std::string("0000010"), std::string("7200000"),
        std::string("7777777"), std::string("710465 "), std::string("71046538"),
        std::string("7104653 ")}) {
    CAPTURE(other);
    CHECK_FALSE(crc_of(other, "7146757"));
    CHECK_FALSE(crc_of("7104653", other));
  }
}

TEST_CASE("a tar label at the end of the file is not read past it", "[formats][tar][malformed]") {
  const std::string archive = tar_entry("a.npy", npy_file(kDict, 12)) + tar_entry("a.txt", "5") +
                              tar_entry("a.cls", std::string(511, '0') + "5");
  // A buffer of exactly this size, so that ASan detects a read past its end.
  const std::vector<char> exact(archive.begin(), archive.end());
  const ShardIndex index = tar::scan(std::as_bytes(std::span(exact)), "x.tar", {});
  REQUIRE(index.places.size() == 1);
  CHECK(index.label_names == Texts{"5"});
  CHECK(index.mismatched_labels.empty());
}

TEST_CASE("tar samples are grouped as in webdataset", "[formats][tar]") {
  const std::string archive =
      tar_entry("__meta__/x.jpg", "no") + tar_entry("__info__", "no") + tar_entry("._a.jpg", "no") +
      tar_entry("d/._a.jpg", "no") + tar_entry("README", "no") + tar_entry("d", "", {.type = '5'}) +
      tar_entry("d.e/a.cls", "7\n") + tar_entry("d.e/a.txt", "a text") +
      tar_entry("d.e/a.JPG", "a photo") + tar_entry("d.e/a.seg.png", "mask") +
      tar_entry("d.e/link.jpg", "", {.type = '2'}) + tar_entry("b.txt", "text") +
      tar_entry("b.json", R"({"label": 5, "x": [1, {"y": 2}]})") + tar_entry("a.cls", "12") +
      tar_entry("c.jpg", "") + kTarEnd;
  const ShardIndex index = scan(archive);
  CHECK(keys_of(index) == Texts{"d.e/a", "b", "a", "c"});
  CHECK(index.samples == 4);
  CHECK(index.unsupported_reason == "its samples are JPEG files");
  const auto payload = [&](std::size_t i) {
    return archive.substr(index.places[i].payload, index.places[i].payload_bytes);
  };
  CHECK(payload(0) == "a photo");
  CHECK(payload(1) == "text");
  CHECK(payload(2) == "12");
  CHECK(payload(3).empty());
  CHECK(index.places[0].label == 7);
  CHECK(index.places[1].label == 5);
  CHECK(index.places[2].label == 12);
  CHECK(index.places[3].label == -1);
  CHECK(index.places[0].record == archive.find("d.e/a.cls"));
}

TEST_CASE("tar images numbered after one key are separate samples", "[formats][tar]") {
  CHECK(keys_of(scan(tar_entry("a.jpg", "1") + tar_entry("a.jpg", "2"))) == Texts{"a", "a"});
  CHECK(keys_of(scan(tar_entry("d/i.1.jpg", "1") + tar_entry("d/i.2.jpg", "2") +
                     tar_entry("d/j.jpg", "3"))) == Texts{"d/i.1", "d/i.2", "d/j"});
  // With any other file next to them, they are fields of one sample.
  const ShardIndex index =
      scan(tar_entry("i.left.jpg", "1") + tar_entry("i.right.jpg", "2") + tar_entry("i.cls", "3"));
  CHECK(keys_of(index) == Texts{"i"});
  CHECK(index.places[0].label == 3);
}

TEST_CASE("tar labels are numbers or names", "[formats][tar]") {
  const auto label = [](const std::string& name, const std::string& text,
                        const std::string& image = "jpg") {
    const ShardIndex index =
        scan(tar_entry("a." + image, image == "npy" ? npy_file(kDict, 12) : "x") +
             tar_entry("a." + name, text));
    if (index.places.empty()) return std::string("column");
    const auto number = index.places[0].label;
    if (index.label_names.empty()) return std::to_string(number);
    return "'" + index.label_names.at(static_cast<std::size_t>(number)) + "'";
  };
  CHECK(label("cls", "5") == "5");
  CHECK(label("cls", " -7\r\n") == "-7");
  CHECK(label("cls", "007") == "7");
  CHECK(label("CLS", "8") == "8");
  CHECK(label("cls", " red cat\n") == "'red cat'");
  CHECK(label("cls", "9223372036854775808") == "'9223372036854775808'");
  CHECK(label("cls", "\x1b[2J\xff") == "'\\x1b[2J\\xff'");
  for (const std::string& text :
       {std::string(), std::string("two\nlines"), std::string(257, '1')}) {
    CHECK(label("cls", text) == "-1");
  }
  CHECK(label("json", R"({"cls": 4})") == "4");
  CHECK(label("json", R"({"label": "cat", "cls": 4})") == "'cat'");
  CHECK(label("json", R"({"class": "cat"})") == "'cat'");
  CHECK(label("json", R"({"label": 1.5})") == "-1");
  CHECK(label("json", R"({"label": true})") == "-1");
  CHECK(label("json", R"([1])") == "-1");
  CHECK(label("json", "{") == "-1");
  CHECK(label("json", "{\"label\": 3, \"x\": \"\xff\"}") == "-1");
  CHECK(label("json",
              R"({"label": 3, "x": )" + std::string(14, '[') + std::string(14, ']') + "}") == "3");
  CHECK(label("json", R"({"label": 3, "x": )" + std::string(100'000, '[') +
                          std::string(100'000, ']') + "}") == "-1");
  CHECK(label("json", R"({"label": 3, "x": ")" + std::string(1 << 20, 'x') + "\"}") == "-1");
  // All texts together decide whether they are captions or numbers.
  CHECK(label("txt", "a cat") == "'a cat'");
  CHECK(label("txt", "cat", "npy") == "'cat'");
  CHECK(label("txt", "3", "npy") == "'3'");
}

TEST_CASE("tar files that should hold a label but do not are noted", "[formats][tar]") {
  const auto index = [](const std::string& name, const std::string& text) {
    return scan(tar_entry("a.jpg", "x") + tar_entry("a." + name, text) + tar_entry("b.jpg", "x") +
                tar_entry("b.txt", "cat"));
  };
  CHECK(index("json", R"({"label": [1, 2]})").mismatched_labels ==
        "a list of 2 in 'label' of 'a.json'");
  CHECK(index("json", R"({"label": 1.5})").mismatched_labels ==
        "the number 1.5 in 'label' of 'a.json'");
  CHECK(index("json", R"({"caption": "x"})").mismatched_labels.empty());
  CHECK(index("cls", "two\nlines").mismatched_labels == "a text of 2 lines of 'a.cls'");
  CHECK(index("txt", "two\nlines").mismatched_labels.empty());
  CHECK(index("txt", "two\nlines").long_texts == 1);
  CHECK(index("txt", "owl").text_labels == 2);
}

TEST_CASE("texts are class names if samples share them", "[formats][tar]") {
  CHECK(tar::TextFiles{4, 0, 2}.are_class_names());
  CHECK_FALSE(tar::TextFiles{3, 0, 2}.are_class_names());
  CHECK_FALSE(tar::TextFiles{4, 1, 1}.are_class_names());
  CHECK(tar::TextFiles{2000, 0, 1000}.are_class_names());
  CHECK_FALSE(tar::TextFiles{5000, 0, 1001}.are_class_names());
}

TEST_CASE("a tar with numbers and names as labels is refused", "[formats][tar]") {
  CHECK_THROWS_AS(scan(tar_entry("a.jpg", "x") + tar_entry("a.cls", "1") + tar_entry("b.jpg", "x") +
                       tar_entry("b.cls", "cat")),
                  Unsupported);
}

TEST_CASE("equal records of a third-party tar become columns", "[formats][tar]") {
  const std::string npy = npy_file(kDict, 12);
  const auto sample = [&](const std::string& key, const std::string& label,
                          const TarHeader& header = {}) {
    return tar_entry(key + ".cls", label) + tar_entry(key + ".npy", npy, header);
  };
  const ShardIndex equal = scan(sample("a", "1") + sample("b", "22") + sample("c", "-3") + kTarEnd);
  CHECK(equal.places.empty());
  CHECK(equal.keys.empty());
  CHECK(equal.samples == 3);
  CHECK(equal.spec == TensorSpec{DType::kUint8, Layout::kChw, 2, 2, 3});
  const std::uint64_t payload = 1536 + npy.size() - 12;
  CHECK(equal.columns ==
        ShardColumns{{payload, 2048, "uint8"}, {512, 2048, "decimal"}, {1024, 2048, "ustar"}});
  // Without labels there is no label column.
  const ShardIndex bare = scan(tar_entry("a.npy", npy) + tar_entry("b.npy", npy));
  CHECK(bare.columns->label == Column{});
  CHECK(bare.columns->image.stride == 1024);
  CHECK(bare.columns->key == Column{0, 1024, "ustar"});

  const std::string first = sample("a", "1") + sample("b", "2");
  for (const std::string& last :
       {sample("c", "3\n"), tar_entry("c.npy", npy),
        tar_entry("c.npy", npy) + tar_entry("c.cls", "3"), sample("c", "3") + tar_entry("d", ""),
        sample("c.NPY", "3"), sample("c", "3", {.magic = test::kGnuMagic, .prefix = "0123"}),
        pax_header(pax_record("path", "c.cls")) + sample("c", "3")}) {
    const ShardIndex other = scan(first + last + sample("z", "4"));
    CAPTURE(last.substr(0, 10));
    CHECK(other.places.size() == other.samples);
    CHECK(other.samples >= 3);
  }
}

TEST_CASE("a tar of precache has a column for the sizes of originals", "[formats][tar]") {
  NamedColumn size;
  size.name = "size";
  size.type = ValueType::kInt32;
  size.shape = {2};
  NamedColumn age;
  age.name = "age";
  for (const std::uint64_t samples : {1U, 4U}) {
    const test::TempFolder folder;
    const test::MadeDataset made =
        test::make_dataset(folder.path(), {.format = Format::kTar,
                                           .spec = test::spec_of(5, 4, 3),
                                           .shards = {samples},
                                           .columns = {age, size}});
    const ShardIndex index = scan(test::read_text(made.shards[0]));
    REQUIRE(index.named);
    CHECK(*index.named == std::vector{size});
    CHECK(index.columns->named == std::vector{made.entries()[0].columns->named[1]});
    CHECK(index.left_out == Texts{"age"});
  }
  // A file of this name that precache did not write may have another meaning.
  const std::string npy = npy_file(kDict, 12);
  const std::string pair = npy_file("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", 8);
  const ShardIndex other = scan(tar_entry("a.npy", npy) + tar_entry("a.size.npy", pair));
  CHECK(other.places.empty());
  CHECK_FALSE(other.named);
}

TEST_CASE("tar samples that differ have no spec", "[formats][tar]") {
  const std::string other = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 1), }";
  const ShardIndex index =
      scan(tar_entry("a.npy", npy_file(kDict, 12)) + tar_entry("b.npy", npy_file(other, 24)));
  CHECK_FALSE(index.spec);
  CHECK(index.unsupported_reason ==
        "samples 0 ('a', uint8 3x2x2 chw) and 1 ('b', float32 3x2x1 chw) differ");
  CHECK(index.places.size() == 2);
  CHECK(index.places[1].payload_bytes == 24);
}

TEST_CASE("malformed tar archives are refused with the offset of the fault",
          "[formats][tar][malformed]") {
  const std::string good = tar_entry("a.txt", std::string(600, 'x'));
  const auto flipped = [&](std::size_t at) {
    std::string archive = good + tar_entry("b.txt", "");
    archive[at] = static_cast<char>(archive[at] ^ 1);
    return archive;
  };
  struct Case {
    std::string archive;
    std::uint64_t offset;
    std::string words;
  };
  for (const auto& [archive, offset, words] : {
           Case{flipped(0), 0, "checksum"},
           Case{flipped(1536 + 150), 1536, "checksum"},
           Case{good + std::string(100, 'x'), 1536, "ends inside a header"},
           Case{good + tar_entry("b", "", {.size = "00000000001"}), 1536, "past the end"},
           Case{good + tar_entry("b", "",
                                 {.size = "\x80" + std::string(3, '\0') + std::string(8, '\xff')}),
                1536, "past the end"},
           Case{good + tar_entry("b", "", {.size = "\x80" + std::string(11, '\xff')}), 1536 + 124,
                "not a number"},
           Case{good + tar_entry("b", "", {.size = std::string(12, '\xff')}), 1536 + 124,
                "not a number"},
           Case{good + tar_entry("b", "", {.size = "0000000000x"}), 1536 + 124, "not a number"},
           Case{good + pax_header("9 path=ab\n"), 2048, "malformed"},
           Case{good + pax_header("99 path=ab\n"), 2048, "malformed"},
           Case{good + pax_header(pax_record("a", "b") + "2 \n"), 2048 + 6, "malformed"},
           Case{good + pax_header("6 path\n"), 2048, "malformed"},
           Case{good + pax_header("7 path\n"), 2048, "equals sign"},
           Case{good + pax_header(pax_record("size", "-1")), 2048, "not a number"},
           Case{good + pax_header(pax_record("path", std::string("a\0b", 3))), 2048, "zero byte"},
           Case{good + pax_header(pax_record("path", "a")), 1536, "after an extended header"},
           Case{good + pax_header(pax_record("size", "18446744073709551615")) + good, 2560,
                "past the end"},
           Case{good + tar_entry("b.npy", "x"), 2048, "not a NumPy array"},
       }) {
    CAPTURE(words, offset);
    try {
      (void)scan(archive);
      FAIL_CHECK("no error was thrown");
    } catch (const CorruptData& error) {
      CHECK(error.offset() == offset);
      CHECK_THAT(error.what(), test::contains(words));
    }
  }
}

TEST_CASE("tar sparse files are not supported", "[formats][tar][malformed]") {
  const auto message = [](const std::string& archive) {
    return test::message_of<Unsupported>([&] { (void)scan(archive); });
  };
  CHECK_THAT(message(tar_entry("a.jpg", "x", {.type = 'S'})), test::contains("sparse"));
  CHECK_THAT(message(pax_header(pax_record("GNU.sparse.major", "1")) + tar_entry("a.jpg", "x")),
             test::contains("'a.jpg' as a sparse file"));
  // A file that is not a sample may be sparse.
  CHECK(scan(tar_entry("disk-image", "x", {.type = 'S'}) + tar_entry("a.jpg", "y")).samples == 1);
}

TEST_CASE("a tar name for all entries does not multiply the memory", "[formats][tar][malformed]") {
  const std::string name = std::string(4000, 'n') + "/";
  std::string archive = pax_header(pax_record("path", name + "a.jpg"), 'g');
  for (int i = 0; i < 2000; ++i) archive += tar_entry("x", "");
  CHECK_THAT(test::message_of<CorruptData>([&] { (void)scan(archive); }),
             test::contains("longer than the file"));
  const std::string huge = pax_header(pax_record("path", std::string(5000, 'n')), 'g');
  CHECK_THROWS_AS(scan(huge + tar_entry("x", "")), Unsupported);
}

TEST_CASE("third-party tar files are read as by their archivers", "[formats][tar][golden]") {
  const auto files = test::corpus("tar");
  if (files.empty()) PRECACHE_SKIP("the corpus of tar files is missing");
  struct Expected {
    const char* file;
    std::size_t samples;
    const char* unsupported_reason;
  };
  const auto scan_file = [](const std::string& name) {
    const auto path = test::corpora() / "tar" / name;
    const auto bytes = read_file(path);
    ShardIndex index = scan_shard(bytes, path);
    CHECK(test::is_inside(index, bytes.size()));
    return index;
  };
  for (const auto& [file, samples, unsupported_reason] :
       {Expected{"aistore/single-png-cls.tar", 1, "its samples are PNG files"},
        Expected{"aistore/small-mnist-3.tar", 3, "its samples are '.img' files"},
        Expected{"pytorch-data/256_ObjectCategories.tar", 6, "its samples are JPEG files"},
        Expected{"tfds/00000.tar", 3, "its samples are JPEG files"},
        Expected{"tfds/ILSVRC2012_img_train.tar", 10, "its samples are '.tar' files"},
        Expected{"tfds/dummy.1.tar", 2, "its samples are JPEG files"},
        Expected{"tfds/s3-tar_train_sha1_0.tar", 32, "its samples are JPEG files"},
        Expected{"webdataset/tendata.tar", 100, "its samples are '.ten' files"},
        Expected{"webdataset/compressed.tar", 3, "its samples are '.txt.gz' files"},
        Expected{"tar-stream/base-256-size.tar", 1, "its samples are '.txt' files"},
        Expected{"tar-stream/v7.tar", 1, "its samples are '.txt' files"},
        Expected{"tar-rs/simple_missing_last_header.tar", 0, "it has no samples"},
        Expected{"go/hdr-only.tar", 0, "it has no samples"}}) {
    CAPTURE(file);
    const ShardIndex index = scan_file(file);
    CHECK(index.samples == samples);
    CHECK(index.unsupported_reason == unsupported_reason);
  }
  const ShardIndex mnist = scan_file("aistore/small-mnist-3.tar");
  CHECK(keys_of(mnist) == Texts{"mnist-3/10000", "mnist-3/10001", "mnist-3/10002"});
  CHECK(mnist.places[0].label == 7);
  CHECK(mnist.places[1].label == 3);
  CHECK(mnist.places[2].label == 4);
  for (const char* name :
       {"go/issue11169.tar", "go/neg-size.tar", "go/writer-big-long.tar",
        "libarchive/test_read_format_tar_acl_oob_read.tar",
        "libarchive/test_read_pax_empty_val_no_nl.tar", "tar-stream/incomplete.tar"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(scan_file(name), CorruptData);
  }
  std::size_t read = 0;
  for (const auto& path : files) {
    CAPTURE(path);
    try {
      (void)scan_file(path.lexically_relative(test::corpora() / "tar").string());
      ++read;
    } catch (const CorruptData&) {
    } catch (const Unsupported& error) {
      CHECK_THAT(error.what(), test::contains("sparse") || test::contains("compressed by") ||
                                   test::contains("Git LFS"));
    }
  }
  CHECK(read >= 70);
}

TEST_CASE("a given spec fills in only what arrays do not state", "[formats][tar][scan]") {
  const auto given = [](const std::string& dict, std::size_t bytes, const TensorSpec& spec) {
    return scan_shard(test::bytes_of(tar_entry("a.npy", npy_file(dict, bytes))), "a.tar", spec)
        .spec;
  };
  const TensorSpec bfloat{DType::kBfloat16, Layout::kChw, 2, 2, 3};
  CHECK(given("{'descr': '<u2', 'fortran_order': False, 'shape': (3, 2, 2), }", 24, bfloat) ==
        bfloat);
  CHECK_FALSE(given("{'descr': '<u2', 'fortran_order': True, 'shape': (3, 2, 2), }", 24, bfloat));
  const TensorSpec bytes{DType::kUint8, Layout::kChw, 2, 2, 3};
  CHECK_FALSE(given("{'descr': '|i1', 'fortran_order': False, 'shape': (3, 2, 2), }", 12, bytes));
  CHECK_FALSE(given("{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2, 2), }", 12, bytes));
  // The order of three small axes is a guess.
  const TensorSpec hwc{DType::kUint8, Layout::kHwc, 4, 4, 3};
  CHECK(given("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 4, 3), }", 48, hwc) == hwc);
}

}  // namespace
}  // namespace precache
