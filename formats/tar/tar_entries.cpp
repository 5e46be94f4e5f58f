// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/tar_entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/text.hpp"
#include "formats/os/file.hpp"
#include "formats/tar/ustar.hpp"
#include "precache/formats/error.hpp"

namespace precache::tar {
namespace {

using ustar::kBlock;

// A name for all entries takes its bytes only once but is processed for each entry. This limit
// keeps the time linear in the size of the file.
constexpr std::size_t kLongestGlobalPath = 4096;

// The bytes in which GNU tar marks that the map of a sparse file has a further block.
constexpr std::size_t kSparseContinues = 482;
constexpr std::size_t kSparseBlockContinues = 504;

std::string_view field(std::span<const std::byte> block, std::size_t offset, std::size_t size) {
  return as_text(block.subspan(offset, size));
}

std::string_view up_to_zero(std::string_view text) { return text.substr(0, text.find('\0')); }

bool is_zero(std::span<const std::byte> block) {
  return std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; });
}

/// A number too large for octal digits: big-endian, marked by the highest bit.
std::optional<std::uint64_t> base_256(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if ((first & 0x40U) != 0) return std::nullopt;  // negative
  std::uint64_t value = first & 0x3fU;
  for (const char digit : text.substr(1)) {
    if (value >> 56 != 0) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(digit);
  }
  return value;
}

std::optional<std::uint64_t> number(std::string_view text) {
  if ((static_cast<unsigned char>(text[0]) & 0x80U) != 0) return base_256(text);
  constexpr std::string_view kFilling(" \0", 2);
  const std::size_t first = text.find_first_not_of(kFilling);
  if (first == std::string_view::npos) return 0;
  text.remove_prefix(first);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  const bool is_whole =
      end == text.data() + text.size() || kFilling.find(*end) != std::string_view::npos;
  if (error != std::errc{} || !is_whole) return std::nullopt;
  return value;
}

bool is_ustar(std::span<const std::byte> block) {
  return field(block, ustar::kMagic, 6) == std::string_view("ustar\0", 6);
}

/// Half of a CRC, as precache writes it to a device number.
std::optional<std::uint32_t> crc_half(std::string_view device) {
  if (device.front() != ustar::kDataCrcMark || device.back() != '\0') return std::nullopt;
  const auto value = parse_number<std::uint32_t>(device.substr(1, device.size() - 2), 8);
  return value && *value <= 0xffffU ? value : std::nullopt;
}

/// The CRC of the blocks after this header, which only precache headers store.
std::optional<std::uint32_t> stored_crc(std::span<const std::byte> block) {
  const auto high = crc_half(field(block, ustar::kDevMajor, ustar::kDevBytes));
  const auto low = crc_half(field(block, ustar::kDevMinor, ustar::kDevBytes));
  if (!is_ustar(block) || !high || !low) return std::nullopt;
  return *high << 16 | *low;
}

/// Checks the two bytes of a header that its checksum does not cover: archivers end the digits in
/// different ways, precache in only one.
bool has_checksum_end(std::span<const std::byte> block) {
  return !stored_crc(block) || field(block, ustar::kChecksum + 6, 2) == std::string_view("\0 ", 2);
}

/// Data follows the header of all types but these.
bool has_no_data(char type) { return type >= '1' && type <= '6'; }

EntryType type_of(char type) {
  switch (type) {
    case '\0':
    case '0':
    case '7':  // contiguous, where that means something
      return EntryType::kFile;
    case '1':
      return EntryType::kHardLink;
    case '2':
      return EntryType::kSymbolicLink;
    case '5':
      return EntryType::kDirectory;
    case 'S':
      return EntryType::kSparse;
    default:
      return EntryType::kOther;
  }
}

}  // namespace

bool has_right_crc(const Entry& entry, std::span<const std::byte> file) {
  return !entry.data_crc ||
         *entry.data_crc == crc32c::value(file.subspan(entry.data, entry.end - entry.data));
}

bool is_header(std::span<const std::byte> block) {
  if (block.size() < kBlock) return false;
  const auto stored = number(field(block, ustar::kChecksum, ustar::kChecksumBytes));
  if (!stored) return false;
  const auto before = block.first(ustar::kChecksum);
  const auto after = block.subspan(ustar::kType, kBlock - ustar::kType);
  std::uint32_t sum = ustar::kChecksumBytes * ' ';
  for (const std::byte byte : before) sum += std::to_integer<std::uint32_t>(byte);
  for (const std::byte byte : after) sum += std::to_integer<std::uint32_t>(byte);
  if (*stored == sum) return true;
  // Some old archivers sum signed bytes.
  const auto is_negative = [](std::byte byte) { return byte >= std::byte{0x80}; };
  const auto negative =
      std::ranges::count_if(before, is_negative) + std::ranges::count_if(after, is_negative);
  return *stored == sum - 256 * static_cast<std::uint64_t>(negative);
}

EntryCursor::EntryCursor(std::span<const std::byte> file, std::filesystem::path path,
                         std::uint64_t begin)
    : file_(file), path_(std::move(path)), at_(begin) {}

void EntryCursor::fail(std::uint64_t offset, const std::string& reason) const {
  throw CorruptData(path_, offset, reason);
}

std::optional<EntryCursor::Header> EntryCursor::read_header() {
  const std::uint64_t rest = file_.size() - at_;
  if (rest == 0) return std::nullopt;
  if (rest < kBlock) fail(at_, "the archive ends inside a header");
  Header header{.block = file_.subspan(at_, kBlock), .offset = at_};
  if (header.block[0] == std::byte{0} && is_zero(header.block)) return std::nullopt;
  if (!is_header(header.block) || !has_checksum_end(header.block)) {
    fail(at_, "the checksum of a tar header is wrong");
  }
  header.type = static_cast<char>(header.block[ustar::kType]);
  const auto size = number(field(header.block, ustar::kSize, ustar::kSizeBytes));
  if (!size) fail(at_ + ustar::kSize, "the size of a tar entry is not a number");
  header.size = *size;
  return header;
}

std::span<const std::byte> EntryCursor::data_of(const Header& header) const {
  const std::uint64_t begin = header.offset + kBlock;
  const std::uint64_t rest = file_.size() - begin;
  // The last block is padded. After the first test, rounding cannot overflow.
  if (header.size > rest || (header.size + kBlock - 1) / kBlock * kBlock > rest) {
    fail(header.offset, "a tar entry runs past the end of the file");
  }
  return file_.subspan(begin, header.size);
}

std::uint64_t EntryCursor::data_end(const Header& header) const {
  return header.offset + kBlock + (data_of(header).size() + kBlock - 1) / kBlock * kBlock;
}

void EntryCursor::read_pax(const Header& header, Extension& extension) const {
  std::string_view rest = as_text(data_of(header));
  bool is_first = true;
  while (!rest.empty()) {
    const auto at = static_cast<std::uint64_t>(rest.data() - as_text(file_).data());
    // "LEN KEYWORD=VALUE\n", where LEN counts itself.
    const std::size_t space = rest.substr(0, 20).find(' ');
    const auto length = parse_number<std::uint64_t>(rest.substr(0, space));
    if (space == std::string_view::npos || !length || *length < space + 2 ||
        *length > rest.size() || rest[*length - 1] != '\n') {
      fail(at, "a pax record is malformed");
    }
    const std::string_view record = rest.substr(space + 1, *length - space - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) fail(at, "a pax record has no equals sign");
    const std::string_view keyword = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (keyword == "path") {
      if (value.find('\0') != std::string_view::npos) fail(at, "a pax path holds a zero byte");
      // An empty value cancels the value of an earlier header.
      extension.path = value.empty() ? std::nullopt : std::optional(value);
      extension.path_header = header.offset;
      extension.path_is_first = is_first;
    } else if (keyword == "linkpath") {
      extension.link = value.empty() ? std::nullopt : std::optional(up_to_zero(value));
    } else if (keyword == "size") {
      extension.size = value.empty() ? std::nullopt : parse_number<std::uint64_t>(value);
      if (!value.empty() && !extension.size) fail(at, "a pax size is not a number");
    } else if (keyword.starts_with("GNU.sparse.") || keyword == "SUN.holesdata") {
      extension.is_sparse = true;
    }
    is_first = false;
    rest.remove_prefix(*length);
  }
}

void EntryCursor::read_extension(const Header& header) {
  switch (header.type) {
    case 'L':
      long_name_ = up_to_zero(as_text(data_of(header)));
      break;
    case 'g':
      read_pax(header, global_);
      if (global_.path.value_or("").size() > kLongestGlobalPath) {
        throw Unsupported(fmt::format("'{}' gives all its entries the same name, of {} bytes",
                                      path_.string(), global_.path->size()));
      }
      break;
    case 'K':
      long_link_ = up_to_zero(as_text(data_of(header)));
      break;
    default:
      read_pax(header, local_);
  }
  at_ = data_end(header);
  const std::uint64_t data = header.offset + kBlock;
  const auto crc = stored_crc(header.block);
  if (crc && *crc != crc32c::value(file_.subspan(data, at_ - data))) {
    fail(data, "a pax header has a wrong CRC");
  }
}

void EntryCursor::name_entry(const Header& header, Entry& entry) {
  if (local_.path) {
    entry.name = *local_.path;
    entry.name_header = local_.path_header;
    entry.name_source = local_.path_is_first && !long_name_ ? NameSource::kPax : NameSource::kOther;
    return;
  }
  if (long_name_ || global_.path) {
    entry.name = long_name_ ? *long_name_ : *global_.path;
    return;
  }
  entry.name = up_to_zero(field(header.block, 0, ustar::kNameBytes));
  entry.name_header = header.offset;
  const std::string_view prefix =
      up_to_zero(field(header.block, ustar::kPrefix, ustar::kPrefixBytes));
  const bool has_prefix = is_ustar(header.block) && !prefix.empty();
  // Other dialects store other fields at the place of the ustar prefix.
  entry.name_source = has_prefix || prefix.empty() ? NameSource::kUstar : NameSource::kOther;
  if (!has_prefix) return;
  joined_name_.assign(prefix);
  joined_name_ += '/';
  joined_name_ += entry.name;
  entry.name = joined_name_;
}

Entry EntryCursor::make_entry(const Header& header) {
  Entry entry;
  name_entry(header, entry);
  entry.type = type_of(header.type);
  if (header.type == '\0' && entry.name.ends_with('/')) entry.type = EntryType::kDirectory;
  if (entry.type == EntryType::kHardLink) {
    const std::string_view link = field(header.block, ustar::kLink, ustar::kLinkBytes);
    entry.link = local_.link ? *local_.link : long_link_ ? *long_link_ : up_to_zero(link);
  }
  const bool is_sparse = local_.is_sparse || global_.is_sparse;
  if (is_sparse && entry.type == EntryType::kFile) entry.type = EntryType::kSparse;
  Header data = header;
  data.size = local_.size ? *local_.size : global_.size.value_or(header.size);
  if (has_no_data(header.type) || entry.type == EntryType::kDirectory) data.size = 0;
  bool continues = header.type == 'S' && header.block[kSparseContinues] != std::byte{0};
  while (continues) {
    data.offset += kBlock;
    if (file_.size() - data.offset < kBlock) {
      fail(header.offset, "the map of a sparse file runs past the end of the file");
    }
    continues = file_[data.offset + kSparseBlockContinues] != std::byte{0};
  }
  entry.data = data.offset + kBlock;
  entry.size = data_of(data).size();
  entry.end = data_end(data);
  if (header.type == '0') entry.data_crc = stored_crc(header.block);
  return entry;
}

std::optional<Entry> EntryCursor::next() {
  const std::uint64_t begin = at_;
  local_ = {};
  long_name_.reset();
  long_link_.reset();
  for (;;) {
    const auto header = read_header();
    if (!header) {
      if (local_.path || local_.size || long_name_) {
        fail(begin, "the archive ends after an extended header");
      }
      return std::nullopt;
    }
    if (std::string_view("gxXLK").find(header->type) != std::string_view::npos) {
      read_extension(*header);
      continue;
    }
    Entry entry = make_entry(*header);
    entry.begin = begin;
    at_ = entry.end;
    return entry;
  }
}

}  // namespace precache::tar
