// SPDX-License-Identifier: Apache-2.0
#include "convert/source/protobuf/message_images.hpp"

#include <google/protobuf/descriptor.h>

#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/example_writer.hpp"

namespace precache {
namespace {

using Type = google::protobuf::FieldDescriptor;
using test::bytes_of;
using test::delimited;
using test::varint;

MessageStep one(std::uint64_t number) { return {.name = std::to_string(number), .number = number}; }

MessageStep many(std::uint64_t number) {
  MessageStep step = one(number);
  step.is_repeated = true;
  return step;
}

std::string number_field(std::uint64_t number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}

struct Found {
  std::string bytes;
  std::optional<std::string> label;
  bool operator==(const Found&) const = default;
};

std::vector<Found> find(const MessagePaths& paths, const std::string& message) {
  MessageImages images(paths);
  const auto record = bytes_of(message);
  const auto* const found = images.find(record);
  REQUIRE(found != nullptr);
  std::vector<Found> result;
  for (const MessageImage& image : *found) {
    const bool lies_in_record =
        image.bytes.empty() ||
        (image.bytes.data() > record.data() && image.bytes.data() < record.data() + record.size());
    CHECK(lies_in_record);
    result.push_back({std::string(test::text_of(image.bytes)), image.label});
  }
  return result;
}

TEST_CASE("each element of the innermost repeated field is a sample", "[convert][protobuf]") {
  const MessagePaths paths{{many(1), one(2), many(3), one(4)}, std::nullopt};
  const auto element = [](const std::string& image) { return delimited(3, delimited(4, image)); };
  const std::string message =
      delimited(1, delimited(2, element("a") + element("b"))) + delimited(9, "unknown") +
      delimited(1, delimited(2, "")) +
      delimited(1, delimited(2, element("c")) + delimited(2, element("d"))) +
      delimited(1, delimited(2, delimited(3, "")));
  CHECK(find(paths, message) ==
        std::vector<Found>{{"a", {}}, {"b", {}}, {"c", {}}, {"d", {}}, {"", {}}});
  CHECK(find(paths, "").empty());
  CHECK(find({{many(4)}, std::nullopt}, delimited(4, "a") + delimited(4, "b")).size() == 2);
}

TEST_CASE("a record without repeated fields on the path is one sample", "[convert][protobuf]") {
  const MessagePaths paths{{one(1), one(2)}, std::nullopt};
  CHECK(find(paths, "") == std::vector<Found>{{"", {}}});
  CHECK(find(paths, number_field(1, 3)) == std::vector<Found>{{"", {}}});
  const std::string twice = delimited(1, delimited(2, "a") + delimited(2, "b")) + delimited(1, "");
  CHECK(find(paths, twice) == std::vector<Found>{{"b", {}}});
}

TEST_CASE("a label belongs to what both paths have in common", "[convert][protobuf]") {
  const auto label = [](std::vector<MessageStep> steps) {
    return LabelField{std::move(steps), Type::TYPE_INT32};
  };
  const auto image = [](const std::string& bytes, std::uint64_t number) {
    return delimited(3, number_field(5, number) + delimited(4, bytes));
  };
  // The label comes before the images, after them, and not at all.
  const std::string message = delimited(1, number_field(7, 1) + image("a", 10) + image("b", 11)) +
                              delimited(1, image("c", 12) + number_field(7, 2)) +
                              delimited(1, image("d", 13)) + number_field(8, 3);
  const std::vector<MessageStep> path{many(1), many(3), one(4)};
  CHECK(find({path, label({many(1), many(3), one(5)})}, message) ==
        std::vector<Found>{{"a", "10"}, {"b", "11"}, {"c", "12"}, {"d", "13"}});
  CHECK(find({path, label({many(1), one(7)})}, message) ==
        std::vector<Found>{{"a", "1"}, {"b", "1"}, {"c", "2"}, {"d", {}}});
  CHECK(find({path, label({one(8)})}, message) ==
        std::vector<Found>{{"a", "3"}, {"b", "3"}, {"c", "3"}, {"d", "3"}});
  CHECK(find({path, label({one(9), one(1)})}, message)[0].label == std::nullopt);
}

TEST_CASE("labels of all types have the value that protobuf gives them", "[convert][protobuf]") {
  const auto labelled = [](Type::Type type, const std::string& bytes, bool is_repeated = false) {
    LabelField label{{is_repeated ? many(2) : one(2)}, type};
    label.enum_names = {{1, "ONE"}};
    return find({{one(1)}, label}, bytes)[0].label;
  };
  const auto minus = static_cast<std::uint64_t>(-3);
  CHECK(labelled(Type::TYPE_INT32, number_field(2, minus)) == "-3");
  CHECK(labelled(Type::TYPE_INT64, number_field(2, minus)) == "-3");
  CHECK(labelled(Type::TYPE_UINT32, number_field(2, UINT32_MAX)) == "4294967295");
  CHECK(labelled(Type::TYPE_UINT64, number_field(2, UINT64_MAX)) == std::nullopt);
  CHECK(labelled(Type::TYPE_SINT32, number_field(2, 5)) == "-3");
  CHECK(labelled(Type::TYPE_SINT64, number_field(2, 5)) == "-3");
  CHECK(labelled(Type::TYPE_BOOL, number_field(2, 7)) == "1");
  CHECK(labelled(Type::TYPE_ENUM, number_field(2, 1)) == "1");
  CHECK(labelled(Type::TYPE_ENUM, number_field(2, 2)) == std::nullopt);
  CHECK(labelled(Type::TYPE_STRING, delimited(2, " cat\n")) == "cat");
  CHECK(labelled(Type::TYPE_STRING, delimited(2, std::string(300, 'x'))) == std::nullopt);
  const std::string fixed = test::little_endian_text(static_cast<std::uint64_t>(-3), 8);
  CHECK(labelled(Type::TYPE_SFIXED64, varint(2 << 3 | 1) + fixed) == "-3");
  CHECK(labelled(Type::TYPE_SFIXED32, varint(2 << 3 | 5) + fixed.substr(0, 4)) == "-3");
  CHECK(labelled(Type::TYPE_FIXED32, varint(2 << 3 | 5) + fixed.substr(0, 4)) == "4294967293");
  CHECK(labelled(Type::TYPE_INT32, delimited(2, varint(300)), true) == "300");
  CHECK(labelled(Type::TYPE_SFIXED32, delimited(2, fixed.substr(0, 4)), true) == "-3");
  CHECK(labelled(Type::TYPE_INT32, delimited(2, varint(300) + varint(1)), true) == std::nullopt);
  CHECK(labelled(Type::TYPE_INT32, number_field(2, 1) + number_field(2, 2), true) == std::nullopt);
  CHECK(labelled(Type::TYPE_INT32, number_field(2, 1) + number_field(2, 2)) == "2");
  CHECK(labelled(Type::TYPE_INT32, delimited(2, "x")) == std::nullopt);  // an unknown field
}

TEST_CASE("a member of a oneof replaces the image", "[convert][protobuf]") {
  MessageStep member = one(1);
  member.rivals = {2};
  const std::string image = delimited(1, delimited(4, "a"));
  const MessagePaths single{{member, one(4)}, std::nullopt};
  CHECK(find(single, image + number_field(2, 0)) == std::vector<Found>{{"", {}}});
  CHECK(find(single, number_field(2, 0) + image) == std::vector<Found>{{"a", {}}});
  const MessagePaths several{{member, many(4)}, std::nullopt};
  CHECK(find(several, image + image).size() == 2);
  CHECK(find(several, image + number_field(2, 0) + image).size() == 1);
}

TEST_CASE("groups are messages", "[convert][protobuf]") {
  MessageStep group = many(1);
  group.is_group = true;
  const auto grouped = [](const std::string& fields) {
    return varint(1 << 3 | 3) + fields + varint(1 << 3 | 4);
  };
  const std::string inner = varint(6 << 3 | 3) + delimited(4, "x") + varint(6 << 3 | 4);
  const MessagePaths paths{{group, one(4)}, std::nullopt};
  CHECK(find(paths, grouped(inner + delimited(4, "a")) + grouped(delimited(4, "b"))) ==
        std::vector<Found>{{"a", {}}, {"b", {}}});
}

TEST_CASE("messages that are malformed on the path are refused", "[convert][protobuf][malformed]") {
  MessageImages images({{many(1), one(2)}, LabelField{{one(3)}, Type::TYPE_INT32}});
  const auto whole = bytes_of(number_field(3, 300) + delimited(1, delimited(2, "image")));
  REQUIRE(images.find(whole) != nullptr);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK((images.find(test::cut(whole, size)) == nullptr) == (size != 3));
  }
  CHECK(images.find(bytes_of(delimited(1, delimited(2, "image").substr(0, 4)))) == nullptr);
  CHECK(images.find(bytes_of(std::string(101, '\x0b') + std::string(101, '\x0c'))) == nullptr);
  CHECK(images.find(bytes_of("\x0b\x14")) == nullptr);  // the end of another group
}

}  // namespace
}  // namespace precache
