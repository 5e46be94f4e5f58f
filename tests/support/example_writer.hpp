// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"

namespace precache::test {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80U);
  return bytes + static_cast<char>(value);
}

/// A field of protobuf's wire type 2.
inline std::string delimited(std::uint64_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

inline std::string feature(std::string_view name, std::uint64_t kind, std::string_view list) {
  return delimited(1, delimited(1, name) + delimited(2, delimited(kind, list)));
}

inline std::string bytes_feature(std::string_view name, std::string_view value) {
  return feature(name, 1, delimited(1, value));
}

inline std::string int_feature(std::string_view name, std::initializer_list<std::int64_t> values,
                               bool packed = true) {
  std::string list;
  for (const std::int64_t value : values) {
    if (!packed) list += varint(1 << 3);
    list += varint(static_cast<std::uint64_t>(value));
  }
  return feature(name, 3, packed ? delimited(1, list) : list);
}

/// An Example of features one after another.
inline std::string example(std::string_view features) { return delimited(1, features); }

inline std::string little_endian_text(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
  return text;
}

inline std::string tfrecord(std::string_view data) {
  const auto crc = [](std::string_view text) {
    return little_endian_text(crc32c::masked(crc32c::value(as_bytes(text))), 4);
  };
  const std::string length = little_endian_text(data.size(), 8);
  return length + crc(length) + std::string(data) + crc(data);
}

}  // namespace precache::test
