// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/example_fields.hpp"

#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/example_writer.hpp"

namespace precache {
namespace {

using test::bytes_feature;
using test::bytes_of;
using test::delimited;
using test::example;
using test::feature;
using test::int_feature;
using test::varint;
using tfrecord::Feature;
using tfrecord::FeatureKind;
using tfrecord::MessageKind;
using tfrecord::WireCursor;

struct Walk {
  std::vector<Feature> features;
  bool is_malformed = false;
};

Walk walk(std::span<const std::byte> bytes) {
  Walk result;
  result.is_malformed = read_features(bytes, result.features) != MessageKind::kExample;
  return result;
}

TEST_CASE("the cursor walks over wire fields of all types", "[formats][tfrecord]") {
  const auto message =
      bytes_of(varint(1 << 3) + varint(300) + varint(2 << 3 | 1) + std::string(8, 'd') +
               delimited(3, "text") + varint(4 << 3 | 5) + std::string(4, 'f') +
               varint(5 << 3 | 3) + delimited(1, "in it") + varint(5 << 3 | 4));
  WireCursor cursor(message);
  const auto number = cursor.next();
  CHECK(number->number == 1);
  CHECK(number->is_varint);
  CHECK(number->varint == 300);
  CHECK(number->encoded == message.data() + 1);
  CHECK(cursor.next()->bytes.size() == 8);
  const auto text = cursor.next();
  CHECK(text->is_delimited);
  CHECK(test::text_of(text->bytes) == "text");
  CHECK(text->encoded == text->bytes.data() - 1);
  CHECK(cursor.next()->bytes.size() == 4);
  const auto group = cursor.next();
  CHECK(group->type == tfrecord::WireType::kGroup);
  CHECK(test::text_of(group->bytes) == delimited(1, "in it"));
  CHECK_FALSE(cursor.next());
  CHECK_FALSE(cursor.is_malformed());
}

TEST_CASE("malformed wire fields end the walk", "[formats][tfrecord][malformed]") {
  const std::string eleven(11, '\x80');
  for (const std::string& text : {std::string("\x80"), std::string("\x08"),
                                  std::string("\x0a\x05"
                                              "abc"),
                                  std::string("\x0b"), std::string("\x0f"),
                                  std::string("\x09"
                                              "1234567"),
                                  std::string("\x02\x00", 2), "\x08" + eleven, "\x0a" + eleven,
                                  eleven, "\x0a" + varint(UINT64_MAX)}) {
    CAPTURE(text);
    const auto bytes = bytes_of(text);
    WireCursor cursor(bytes);
    CHECK_FALSE(cursor.next());
    CHECK(cursor.is_malformed());
    CHECK_FALSE(cursor.next());
  }
}

TEST_CASE("features of an Example are found in place", "[formats][tfrecord]") {
  const auto bytes = bytes_of(example(
      bytes_feature("image", "pixels") + int_feature("label", {-2}) +
      int_feature("shape", {5, 6, 300}, false) + feature("scores", 2, delimited(1, "1234")) +
      feature("names", 1, delimited(1, "one") + delimited(1, "two")) + feature("none", 1, "") +
      int_feature("many", {1, 2, 3, 4, 5, 6, 7}) + delimited(1, delimited(1, "empty"))));
  const auto [features, is_malformed] = walk(bytes);
  CHECK_FALSE(is_malformed);
  REQUIRE(features.size() == 8);
  CHECK(features[0].name == "image");
  CHECK(features[0].kind == FeatureKind::kBytes);
  CHECK(features[0].count == 1);
  CHECK(test::text_of(features[0].bytes) == "pixels");
  CHECK(features[0].bytes.data() > bytes.data());
  CHECK(features[0].encoded == features[0].bytes.data() - 1);
  CHECK(features[1].kind == FeatureKind::kIntegers);
  CHECK(features[1].integers[0] == -2);
  CHECK(std::to_integer<int>(*features[1].encoded) == 0xfe);
  CHECK(features[2].count == 3);
  CHECK(features[2].integers == std::array<std::int64_t, 4>{5, 6, 300, 0});
  CHECK(features[3].kind == FeatureKind::kFloats);
  CHECK(features[4].count == 2);
  CHECK(test::text_of(features[4].bytes) == "one");
  CHECK(features[5].count == 0);
  CHECK(features[6].count == Feature::kMostIntegers + 1);
  CHECK(features[7].kind == FeatureKind::kNone);
  CHECK(walk({}).features.empty());
  // A message may be given in parts.
  const auto parts = bytes_of(example(int_feature("a", {1})) + example(int_feature("b", {2})));
  CHECK(walk(parts).features.size() == 2);
}

TEST_CASE("other messages are not taken for Examples", "[formats][tfrecord][malformed]") {
  const std::string context = example(bytes_feature("key", "k"));
  for (const std::string& text :
       {context + delimited(2, ""),  // a SequenceExample
        std::string("plain text"), std::string("\x09") + std::string(8, 'x'),
        varint(1 << 3) + "\x01", delimited(1, "\x08\x01"), delimited(1, delimited(2, "x")),
        delimited(1, delimited(1, delimited(3, "x"))), example(feature("a", 4, "")),
        example(feature("a", 1, "\x08\x01")), example(feature("a", 3, delimited(1, "\x80"))),
        example(feature("a", 3, std::string("\x09") + std::string(8, 'x')))}) {
    CAPTURE(text);
    CHECK(walk(bytes_of(text)).is_malformed);
  }
  const auto whole = bytes_of(context);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    CHECK(walk(test::cut(whole, size)).is_malformed);
  }
}

}  // namespace
}  // namespace precache
