// SPDX-License-Identifier: Apache-2.0
#include "formats/os/file.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/corpora.hpp"
#include "tests/support/example_writer.hpp"
#include "tests/support/indexes.hpp"

namespace precache {
namespace {

using test::bytes_feature;
using test::delimited;
using test::example;
using test::feature;
using test::int_feature;
using test::key_of;
using test::tfrecord;

ShardIndex scan(const std::string& file) { return test::scan_text(file, "a.tfrecord"); }

ShardIndex scan_one(const std::string& features) { return scan(tfrecord(example(features))); }

std::string payload_of(const std::string& features) {
  const std::string file = tfrecord(example(features));
  const ShardIndex index = scan(file);
  // A single record is always at one stride.
  if (index.places.empty()) return file.substr(index.columns->image.base, index.spec->size_bytes());
  return file.substr(index.places[0].payload, index.places[0].payload_bytes);
}

const std::string kPixels(6 * 5 * 3, 'p');

TEST_CASE("tfrecord images are found by the names of features", "[formats][tfrecord]") {
  const std::string large = bytes_feature("large", "the largest of all");
  const std::string names[] = {"image/encoded", "image", "image_raw", "img", "jpg", "jpeg", "png"};
  std::string features = large;
  for (auto name = std::rbegin(names); name != std::rend(names); ++name) {
    features = bytes_feature(*name, *name) + features;
    CHECK(payload_of(features) == *name);
  }
  CHECK(payload_of(bytes_feature("small", "s") + large + bytes_feature("text", "t")) ==
        "the largest of all");
  CHECK(payload_of(bytes_feature("filename", "a long name of a file") + bytes_feature("x", "y")) ==
        "y");
  // The first record decides the name of the image for all.
  const std::string file = tfrecord(example(bytes_feature("a", "1234") + bytes_feature("b", "1"))) +
                           tfrecord(example(bytes_feature("a", "5") + bytes_feature("b", "678")));
  const ShardIndex index = scan(file);
  CHECK(file.substr(index.places[1].payload, index.places[1].payload_bytes) == "5");
}

TEST_CASE("tfrecord labels and keys are found by the names of features", "[formats][tfrecord]") {
  const std::string image = bytes_feature("image", "i");
  const auto label = [&](const std::string& features) {
    return scan_one(image + features).places[0].label;
  };
  CHECK(label(int_feature("label", {7})) == 7);
  CHECK(label(int_feature("label", {7}, false)) == 7);
  CHECK(label(int_feature("cls", {-1})) == -1);
  CHECK(label(int_feature("label", {INT64_MIN})) == INT64_MIN);
  CHECK(label(int_feature("label", {7}) + int_feature("image/class/label", {8})) == 8);
  CHECK(label(int_feature("class", {7}) + int_feature("cls", {8})) == 7);
  CHECK(label(bytes_feature("cls", "12")) == 12);
  const ShardIndex named = scan_one(image + bytes_feature("label", "cat"));
  CHECK(named.places[0].label == 0);
  CHECK(named.label_names == std::vector<std::string>{"cat"});
  CHECK(scan_one(image + bytes_feature("image/class/text", "cat")).label_names ==
        std::vector<std::string>{"cat"});
  CHECK(label(bytes_feature("label", std::string(257, 'x'))) == -1);
  CHECK(label(int_feature("other", {3})) == -1);
  CHECK(label("") == -1);
  const auto key = [&](const std::string& features) {
    return key_of(scan_one(image + features), 0);
  };
  CHECK(key(bytes_feature("key", "k") + bytes_feature("image/filename", "f")) == "k");
  CHECK(key(bytes_feature("__key__", "k") + bytes_feature("image/filename", "f")) == "f");
  CHECK(key(bytes_feature("image_id", "k")) == "k");
  CHECK(key("").empty());
}

TEST_CASE("tfrecord shapes come from features that match the number of bytes",
          "[formats][tfrecord]") {
  const std::string image = bytes_feature("image_raw", kPixels);
  const TensorSpec hwc{DType::kUint8, Layout::kHwc, 6, 5, 3};
  const auto spec = [&](const std::string& features) { return scan_one(image + features).spec; };
  const std::string height = int_feature("height", {6});
  const std::string width = int_feature("width", {5});
  CHECK(spec(height + width + int_feature("channels", {3})) == hwc);
  CHECK(spec(height + width + int_feature("depth", {3})) == hwc);
  CHECK(spec(height + width) == hwc);
  CHECK(spec(int_feature("image/height", {6}) + int_feature("image/width", {5}, false)) == hwc);
  CHECK(spec(int_feature("shape", {6, 5, 3})) == hwc);
  CHECK(spec(int_feature("shape", {3, 6, 5})) == TensorSpec{DType::kUint8, Layout::kChw, 6, 5, 3});
  CHECK(spec(int_feature("shape", {9, 10})) == TensorSpec{DType::kUint8, Layout::kChw, 9, 10, 1});
  for (const std::string& features :
       {std::string(), height, height + width + int_feature("channels", {4}),
        int_feature("height", {7}) + width, int_feature("height", {-6}) + width,
        int_feature("height", {INT64_MAX}) + int_feature("width", {INT64_MAX}),
        int_feature("height", {1LL << 32}) + int_feature("width", {1LL << 32}),
        int_feature("shape", {6, 5, 3, 1}), int_feature("shape", {6, 5, 3, 1, 1}),
        int_feature("shape", {90}), int_feature("shape", {6, 5, 4})}) {
    CHECK_FALSE(spec(features));
    CHECK_THAT(scan_one(image + features).unsupported_reason,
               test::contains("raw bytes of unknown shape"));
  }
}

TEST_CASE("tfrecord images that are files have their kind named", "[formats][tfrecord]") {
  const auto unsupported_reason = [](const std::string& bytes) {
    return scan_one(bytes_feature("image", bytes) + int_feature("height", {6})).unsupported_reason;
  };
  CHECK(unsupported_reason("\xff\xd8\xff\xe0 and so on") == "its samples are JPEG files");
  CHECK(unsupported_reason("\x89PNG\r\n\x1a\n and so on") == "its samples are PNG files");
  CHECK(unsupported_reason("RIFF1234WEBPVP8 ") == "its samples are WebP files");
  // Pixels that start like a file are pixels if their number is right.
  std::string pixels = kPixels;
  pixels.replace(0, 4, "\xff\xd8\xff\xe0");
  CHECK(scan_one(bytes_feature("image", pixels) + int_feature("shape", {6, 5, 3})).spec);
}

TEST_CASE("equal records of a third-party tfrecord become columns", "[formats][tfrecord]") {
  const auto record = [](const std::string& key, std::int64_t label, bool packed = true) {
    return tfrecord(example(bytes_feature("key", key) + int_feature("label", {label}, packed) +
                            int_feature("shape", {6, 5, 3}) + bytes_feature("image", kPixels)));
  };
  const std::string first = record("a", 5);
  const ShardIndex index = scan(first + record("b", 6) + record("c", 127));
  CHECK(index.samples == 3);
  CHECK(index.places.empty());
  CHECK(index.columns->image == Column{first.find("ppp"), first.size(), "uint8"});
  CHECK(index.columns->key == Column{first.find("\x01"
                                                "a"),
                                     first.size(), "bytes"});
  CHECK(first[index.columns->label.base] == 5);
  CHECK(index.columns->label.type == "varint");
  for (const std::string& other :
       {record("bb", 6), record("b", 128), tfrecord(example(bytes_feature("image", kPixels))),
        record("b", 6, false)}) {
    const ShardIndex table = scan(first + other + record("c", 7));
    CHECK(table.places.size() == 3);
    CHECK(key_of(table, 2) == "c");
    CHECK(table.places[2].label == 7);
  }
}

TEST_CASE("tfrecord records that are not Examples are payloads", "[formats][tfrecord]") {
  const std::string sequence = example(bytes_feature("image", "i")) + delimited(2, "");
  for (const std::string& data : {std::string("text"), sequence}) {
    const std::string file = tfrecord(data);
    const ShardIndex index = scan(file);
    CHECK(index.unsupported_reason == "record 0 is not a tf.train.Example");
    REQUIRE(index.places.size() == 1);
    CHECK(file.substr(index.places[0].payload, index.places[0].payload_bytes) == data);
  }
  CHECK(scan(tfrecord("")).unsupported_reason == "record 0 has no feature with bytes");
  CHECK(scan_one(int_feature("label", {3})).places[0].label == 3);
}

TEST_CASE("third-party tfrecord files are read", "[formats][tfrecord][golden]") {
  const auto folder = test::corpora() / "tfrecord";
  if (test::corpus("tfrecord").empty()) {
    PRECACHE_SKIP("the corpus of TFRecord files is missing");
  }
  const auto scan_file = [&](const std::string& name) {
    const auto bytes = read_file(folder / name);
    ShardIndex index = scan_shard(bytes, folder / name);
    CHECK(test::is_inside(index, bytes.size()));
    return index;
  };
  struct Expected {
    const char* file;
    std::size_t samples;
    const char* words;
  };
  for (const auto& [file, samples, words] :
       {Expected{"aistore/single-png-cls-transformed.tfrecord", 1, "PNG files"},
        Expected{"aistore/small-mnist-3.record", 3, "unknown shape"},
        Expected{"csv2tfrecord/test.record", 25, "JPEG files"},
        Expected{"derived/data-crc-flip.tfrecord", 2,
                 "JPEG files"},  // only verify finds the damage
        Expected{"derived/duplicate-records.tfrecord", 4, "JPEG files"},
        Expected{"derived/empty.tfrecord", 0, "no samples"},
        Expected{"derived/payload-not-protobuf.tfrecord", 2, "JPEG files"},
        Expected{"derived/payload-truncated-protobuf.tfrecord", 1, "not a tf.train.Example"},
        Expected{"derived/zero-length-record.tfrecord", 3, "JPEG files"},
        Expected{"grain/morris_sequence_first_5.tfrecord", 5, "not a tf.train.Example"},
        Expected{"pytorch-data/sequence_example.tfrecord", 4, "not a tf.train.Example"},
        Expected{"tf-models/pets_examples.record", 10, "JPEG files"},
        Expected{"tfds/dmlab-train.tfrecord-00000-of-00001", 2, "JPEG files"},
        Expected{"tfevents/events.out.tfevents.1681803618.DESKTOP-S8397AS.3164.0", 101,
                 "not a tf.train.Example"}}) {
    CAPTURE(file);
    const ShardIndex index = scan_file(file);
    CHECK(index.samples == samples);
    CHECK_THAT(index.unsupported_reason, test::contains(words));
  }
  for (const auto& [file, offset, words] :
       {Expected{"derived/huge-length-valid-crc.tfrecord", 30966, "past the end"},
        Expected{"derived/length-crc-flip.tfrecord", 30966, "CRC"},
        Expected{"derived/length-flip.tfrecord", 30966, "CRC"},
        Expected{"derived/max-length-valid-crc.tfrecord", 30966, "past the end"},
        Expected{"derived/trailing-zeros.tfrecord", 59333, "CRC"},
        Expected{"derived/truncated-before-data-crc.tfrecord", 0, "past the end"},
        Expected{"derived/truncated-in-data.tfrecord", 30966, "past the end"},
        Expected{"derived/truncated-in-header.tfrecord", 30966, "inside a length"}}) {
    CAPTURE(file);
    try {
      (void)scan_file(file);
      FAIL_CHECK("no error was thrown");
    } catch (const CorruptData& error) {
      CHECK(error.offset() == offset);
      CHECK_THAT(error.what(), test::contains(words));
    }
  }
  for (const char* name : {"derived/gzip.tfrecord", "derived/zlib.tfrecord",
                           "derived/gzip-truncated.tfrecord", "tfx/data.tfrecord.gz"}) {
    CHECK_THAT(test::message_of<Unsupported>([&] { (void)scan_file(name); }),
               test::contains("compressed by"));
  }
}

}  // namespace
}  // namespace precache
