// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/ustar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"

namespace precache::ustar {
namespace {

// "LEN KEYWORD=VALUE\n", where LEN counts itself.
constexpr std::string_view kPathKeyword = "path=";
constexpr std::string_view kCommentKeyword = "comment=";
constexpr std::size_t kSmallestComment = 12;  // "12 comment=\n"

std::size_t digits(std::size_t value) { return fmt::formatted_size("{}", value); }

std::size_t pax_record_bytes(std::size_t value_bytes) {
  const std::size_t rest = 1 + kPathKeyword.size() + value_bytes + 1;
  std::size_t total = rest + digits(rest);
  while (total != rest + digits(total)) ++total;
  return total;
}

// Position of the slash between prefix and name, 0 if none is needed, npos if the path does not
// fit.
std::size_t split_position(std::size_t path_bytes, std::string_view directories) {
  if (path_bytes <= kNameBytes) return 0;
  for (std::size_t slash = directories.find('/'); slash != std::string_view::npos;
       slash = directories.find('/', slash + 1)) {
    if (slash > kPrefixBytes) break;
    if (slash > 0 && path_bytes - slash - 1 <= kNameBytes) return slash;
  }
  return std::string_view::npos;
}

// Does not cut a UTF-8 sequence in two.
std::string_view cut(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

// With its dot; empty if it is too long to keep in a shortened name.
std::string_view extension_of(std::string_view path) {
  constexpr std::size_t kLongestExtension = 32;
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || path.size() - dot > kLongestExtension) return {};
  return path.substr(dot);
}

void write_block(char* header, std::string_view prefix, std::string_view file_name,
                 std::uint64_t size, char type, std::uint32_t data_crc) {
  const auto put = [&](std::size_t offset, std::string_view text) {
    text.copy(header + offset, text.size());
  };
  std::memset(header, 0, kBlock);
  put(0, file_name);
  put(kMode, "0000644");
  put(kUid, "0000000");
  put(kGid, "0000000");
  fmt::format_to_n(header + kSize, 11, "{:011o}", size);
  put(kMtime, "00000000000");
  put(kChecksum, "        ");
  header[kType] = type;
  put(kMagic, std::string_view("ustar\0"
                               "00",
                               8));
  fmt::format_to_n(header + kDevMajor, 7, "{}{:06o}", kDataCrcMark, data_crc >> 16);
  fmt::format_to_n(header + kDevMinor, 7, "{}{:06o}", kDataCrcMark, data_crc & 0xffffU);
  put(kPrefix, prefix);
  unsigned sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(header[i]);
  fmt::format_to_n(header + kChecksum, 6, "{:06o}", sum);
  header[kChecksum + 6] = '\0';
}

char* chars(std::span<std::byte> bytes) { return reinterpret_cast<char*>(bytes.data()); }

}  // namespace

std::string shortened(std::string_view name, std::size_t bytes) {
  const std::string mark = "~" + crc32c::text(crc32c::value(as_bytes(name)));
  std::string result(cut(name, bytes - mark.size()));
  // The cut may be inside a folder's name, where a dot would now start an extension.
  const std::size_t base = result.rfind('/') + 1;  // npos + 1 is 0
  std::replace(result.begin() + static_cast<std::ptrdiff_t>(base), result.end(), '.', '_');
  return result + mark;
}

bool fits(std::size_t path_bytes, std::string_view key) {
  return split_position(path_bytes, key) != std::string_view::npos;
}

void write_header(std::span<std::byte> block, std::string_view path, std::uint64_t size,
                  std::uint32_t data_crc) {
  const std::size_t slash = split_position(path.size(), path);
  if (slash == 0) {
    write_block(chars(block), {}, path, size, '0', data_crc);
  } else if (slash == std::string_view::npos) {
    const std::string_view extension = extension_of(path);
    const std::string_view stem = path.substr(0, path.size() - extension.size());
    const std::string name = shortened(stem, kNameBytes - extension.size()).append(extension);
    write_block(chars(block), {}, name, size, '0', data_crc);
  } else {
    write_block(chars(block), path.substr(0, slash), path.substr(slash + 1), size, '0', data_crc);
  }
}

std::size_t pax_data_blocks(std::size_t longest_path) {
  return round_up(pax_record_bytes(longest_path) + kSmallestComment, kBlock) / kBlock;
}

void write_pax(std::span<std::byte> bytes, std::string_view path) {
  const std::size_t data_bytes = bytes.size() - kBlock;
  const std::size_t path_record = pax_record_bytes(path.size());
  const std::size_t comment = data_bytes - path_record;
  char* out = chars(bytes) + kBlock;
  out = fmt::format_to(out, "{} {}{}\n", path_record, kPathKeyword, path);
  const std::size_t filling = comment - digits(comment) - 1 - kCommentKeyword.size() - 1;
  fmt::format_to(out, "{} {}{:x>{}}\n", comment, kCommentKeyword, "", filling);
  write_block(chars(bytes), {}, "././@PaxHeader", data_bytes, 'x',
              crc32c::value(bytes.subspan(kBlock)));
}

}  // namespace precache::ustar
