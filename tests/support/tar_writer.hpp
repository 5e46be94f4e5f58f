// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace precache::test {

inline const std::string kUstarMagic(
    "ustar\0"
    "00",
    8);
inline const std::string kGnuMagic("ustar  \0", 8);

/// The fields of a header except for its name.
struct TarHeader {
  char type = '0';
  std::string magic = kUstarMagic;
  std::string prefix = {};
  std::string size = {};  // as written; else the size of the data, in octal
};

inline void set_tar_checksum(std::string& header) {
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char byte : header.substr(0, 512)) sum += static_cast<unsigned char>(byte);
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
}

/// An entry with its data, written by the specification and not by the code under test.
inline std::string tar_entry(std::string_view name, std::string_view data,
                             const TarHeader& options = {}) {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(100, 7, "0000644");
  const std::string size =
      options.size.empty() ? fmt::format("{:011o}", data.size()) : options.size;
  block.replace(124, size.size(), size);
  block[156] = options.type;
  block.replace(257, options.magic.size(), options.magic);
  block.replace(345, options.prefix.size(), options.prefix);
  set_tar_checksum(block);
  block += data;
  block.resize((block.size() + 511) / 512 * 512);
  return block;
}

inline std::string pax_record(std::string_view keyword, std::string_view value) {
  const std::size_t rest = keyword.size() + value.size() + 3;
  std::size_t total = rest + 1;
  while (fmt::formatted_size("{}", total) + rest != total) ++total;
  return fmt::format("{} {}={}\n", total, keyword, value);
}

inline std::string pax_header(std::string_view records, char type = 'x') {
  return tar_entry("PaxHeader", records, {.type = type});
}

inline const std::string kTarEnd(1024, '\0');

/// A .npy file of version 1.0 with an array of zeros.
inline std::string npy_file(std::string_view dict, std::size_t array_bytes) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(dict.size() & 0xff);
  file += static_cast<char>(dict.size() >> 8);
  file += dict;
  return file + std::string(array_bytes, '\0');
}

}  // namespace precache::test
