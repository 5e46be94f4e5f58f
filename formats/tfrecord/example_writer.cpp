// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/example_writer.hpp"

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"

namespace precache::tfrecord {
namespace {

// Fields of protobuf whose values have a length.
constexpr char kField1 = 0x0a;  // Example.features, Features.feature, a map's key, a list's values
constexpr char kField2 = 0x12;  // a map's value
constexpr char kBytesList = 0x0a;
constexpr char kInt64List = 0x1a;

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

void append_field(std::string& out, char field, std::string_view value) {
  out += field;
  append_varint(out, value.size());
  out += value;
}

void append_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (; bytes > 0; --bytes, value >>= 8) out += static_cast<char>(value);
}

}  // namespace

void ExampleWriter::add(std::string_view feature, char list_field, std::string_view list) {
  std::string value;
  append_field(value, list_field, list);
  std::string entry;
  append_field(entry, kField1, feature);
  append_field(entry, kField2, value);
  append_field(features_, kField1, entry);
}

void ExampleWriter::add_integer(std::string_view feature, std::int64_t value) {
  std::string number;
  append_varint(number, static_cast<std::uint64_t>(value));
  std::string list;
  append_field(list, kField1, number);
  add(feature, kInt64List, list);
}

void ExampleWriter::add_bytes(std::string_view feature, std::string_view value) {
  std::string list;
  append_field(list, kField1, value);
  add(feature, kBytesList, list);
}

std::string ExampleWriter::record() && {
  std::string example;
  append_field(example, kField1, features_);
  std::string record;
  append_little_endian(record, example.size(), 8);
  append_little_endian(record, crc32c::masked(crc32c::value(as_bytes(record))), 4);
  record += example;
  append_little_endian(record, crc32c::masked(crc32c::value(as_bytes(example))), 4);
  return record;
}

}  // namespace precache::tfrecord
