// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/npy_header.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "formats/bytes/text.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;
constexpr std::size_t kMostAxes = 32;       // NumPy's own limit, up to version 1
constexpr std::size_t kDeepestNesting = 8;  // of a description of records

struct Malformed {
  std::size_t position;  // in the dictionary
  const char* reason;
};

/// Reads the Python dictionary that NumPy writes, and no other Python.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : text_(text) {}

  void read(Header& header) {
    expect('{');
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        header.descr = descr();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = shape();
      } else {
        fail("its dictionary has an unknown or repeated key");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("there is more text after its dictionary");
    if (!has_descr || !has_order || !has_shape)
      fail("its dictionary must have the keys descr, fortran_order and shape");
  }

 private:
  [[noreturn]] void fail(const char* reason) const { throw Malformed{at_, reason}; }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail("its dictionary is malformed");
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a string is missing in its dictionary");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string of its dictionary does not end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    if (value.find('\\') != std::string_view::npos)
      fail("a string of its dictionary has a backslash");
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) fail("its fortran_order is neither True nor False");
    return false;
  }

  /// Empty for the list that describes records.
  std::string descr() {
    skip_space();
    if (at_ == text_.size() || text_[at_] != '[') return std::string(string());
    std::size_t depth = 0;
    do {
      skip_space();
      if (at_ == text_.size()) fail("the list of its descr does not end");
      const char next = text_[at_];
      if (next == '\'' || next == '"') {
        (void)string();
        continue;
      }
      if (next == '[' || next == '(') ++depth;
      if (next == ']' || next == ')') --depth;
      if (depth > kDeepestNesting) fail("its descr is nested too deeply");
      ++at_;
    } while (depth != 0);
    return {};
  }

  std::vector<std::uint64_t> shape() {
    std::vector<std::uint64_t> extents;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::uint64_t extent = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc{}) fail("an extent of its shape is not a 64-bit number");
      at_ += static_cast<std::size_t>(end - begin);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote long integers
      extents.push_back(extent);
      if (extents.size() > kMostAxes) fail("its shape has too many axes");
      if (accept(',')) continue;
      // To Python, "(5)" is a number, not a tuple.
      if (extents.size() == 1) fail("its shape is not a tuple");
      expect(')');
      break;
    }
    return extents;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The bytes of an element, from NumPy's type string: '<f4', '|S10'. None for pickled objects and
/// unknown types.
std::optional<std::uint64_t> element_bytes(std::string_view descr) {
  if (descr.size() < 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos ||
      std::string_view("biufcmMSUV").find(descr[1]) == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view digits = descr.substr(2, descr.find('[') - 2);  // '<M8[ns]'
  auto size = parse_number<std::uint64_t>(digits);
  if (size && descr[1] == 'U' && __builtin_mul_overflow(*size, 4U, &*size)) return std::nullopt;
  return size;
}

std::optional<DType> dtype_of(std::string_view descr) {
  if (descr == "|u1" || descr == "<u1") return DType::kUint8;
  if (descr == "<f2") return DType::kFloat16;
  if (descr == "<f4") return DType::kFloat32;
  return std::nullopt;
}

}  // namespace

Header read_header(std::span<const std::byte> file, const std::filesystem::path& path,
                   std::uint64_t offset) {
  const std::string_view text = as_text(file);
  if (text.size() < kVersionEnd || !text.starts_with(kMagic)) {
    throw CorruptData(path, offset, "an entry named .npy is not a NumPy array");
  }
  const auto byte_at = [&](std::size_t at) { return std::to_integer<std::size_t>(file[at]); };
  const std::size_t version = byte_at(6);
  if (version < 1 || version > 3 || byte_at(7) != 0) {
    throw Unsupported(
        fmt::format("'{}' has a NumPy array of the unsupported version {}.{} at byte {}",
                    path.string(), version, byte_at(7), offset));
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t begin = kVersionEnd + length_bytes;
  if (text.size() < begin)
    throw CorruptData(path, offset, "the header of a NumPy array is truncated");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte_at(kVersionEnd + i) << 8 * i;
  if (length > text.size() - begin) {
    throw CorruptData(path, offset, "the header of a NumPy array runs past its entry");
  }
  Header header;
  try {
    DictReader(text.substr(begin, length)).read(header);
  } catch (const Malformed& malformed) {
    throw CorruptData(
        path, offset + begin + malformed.position,
        fmt::format("the header of a NumPy array is malformed: {}", malformed.reason));
  }
  header.header_bytes = begin + length;
  const std::uint64_t rest = text.size() - header.header_bytes;
  header.array_bytes = rest;
  if (auto bytes = element_bytes(header.descr)) {
    bool fits = true;
    for (const std::uint64_t extent : header.shape) {
      fits = fits && !__builtin_mul_overflow(*bytes, extent, &*bytes);
    }
    if (!fits || *bytes > rest) {
      throw CorruptData(path, offset, "a NumPy array is larger than its entry");
    }
    header.array_bytes = *bytes;
  }
  return header;
}

SpecGuess guess_spec(const Header& header) {
  if (header.descr == "<u2") {
    return {std::nullopt,
            "its arrays are '<u2', which may be uint16 or bfloat16; only dataset.json says which"};
  }
  const auto dtype = dtype_of(header.descr);
  if (!dtype) {
    return {std::nullopt, header.descr.empty()
                              ? "its arrays hold records"
                              : fmt::format("its arrays are of type '{}'", header.descr)};
  }
  if (header.fortran_order) return {std::nullopt, "its arrays are in Fortran order"};
  return precache::guess_spec(*dtype, header.shape);
}

}  // namespace precache::npy
