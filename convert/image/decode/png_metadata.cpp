// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "convert/image/decode/exif.hpp"
#include "convert/image/decode/png_decoder.hpp"
#include "formats/os/file.hpp"

namespace precache {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkHeaderBytes = 8;  // length and type
constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kIhdrBytes = 13;
constexpr std::size_t kMostTextBytes = std::size_t{1} << 20;        // in one chunk
constexpr std::size_t kMostTotalTextBytes = std::size_t{64} << 20;  // in all of them
constexpr std::uint64_t kBestCompression = 1032;                    // that deflate can reach

std::uint32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

std::pair<std::string_view, std::string_view> split_at_nul(std::string_view text) {
  const auto nul = text.find('\0');
  if (nul == std::string_view::npos) return {text, {}};
  return {text.substr(0, nul), text.substr(nul + 1)};
}

/// EXIF data as ImageMagick stores it: a name, a length and hexadecimal digits, each on its line.
std::string unhex_raw_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    const int value = digit(c);
    if (value < 0) continue;
    if (high < 0) {
      high = value;
    } else {
      bytes += static_cast<char>(high << 4 | value);
      high = -1;
    }
  }
  return bytes;
}

// From bit depth and colour type of IHDR. libpng rejects invalid ones later.
std::uint64_t bits_per_pixel(std::span<const std::byte> ihdr) {
  const auto depth = std::to_integer<std::uint64_t>(ihdr[8]);
  switch (std::to_integer<unsigned>(ihdr[9])) {
    case 2:  // RGB
      return depth * 3;
    case 4:  // grey and alpha
      return depth * 2;
    case 6:  // RGB and alpha
      return depth * 4;
    default:
      return depth;
  }
}

/// Collects the chunks that set the orientation; later ones win.
class Metadata {
 public:
  std::optional<Rejection> take(std::string_view type, std::span<const std::byte> data) {
    if (type == "eXIf") exif_ = as_text(data);
    if (type == "tEXt") {
      const auto [keyword, text] = split_at_nul(as_text(data));
      take_text(keyword, text);
    }
    if (type == "zTXt" || type == "iCCP") {
      const auto [keyword, rest] = split_at_nul(as_text(data));
      return take_compressed(keyword, rest.substr(std::min<std::size_t>(1, rest.size())));
    }
    if (type == "iTXt") {  // keyword, compressed?, method, language, translated keyword, text
      const auto [keyword, rest] = split_at_nul(as_text(data));
      if (rest.size() < 2) return std::nullopt;
      const auto text = split_at_nul(split_at_nul(rest.substr(2)).second).second;
      if (rest[0] != 0) return take_compressed(keyword, text);
      take_text(keyword, text);
    }
    return std::nullopt;
  }

  [[nodiscard]] int orientation() const {
    const std::string& exif = exif_.empty() ? raw_exif_ : exif_;
    return orientation_of(as_bytes(exif), as_bytes(xmp_));
  }

 private:
  std::optional<Rejection> take_compressed(std::string_view keyword, std::string_view compressed) {
    uLongf bytes = kMostTextBytes + 1;
    const auto text = std::make_unique_for_overwrite<char[]>(bytes);
    const int status =
        uncompress(reinterpret_cast<Bytef*>(text.get()), &bytes,
                   reinterpret_cast<const Bytef*>(compressed.data()), compressed.size());
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    total_text_bytes_ += bytes;
    if (bytes > kMostTextBytes || total_text_bytes_ > kMostTotalTextBytes) {
      return Rejection{RejectionStage::kLimit,
                       "the compressed metadata is larger than Pillow allows"};
    }
    if (status == Z_OK) take_text(keyword, {text.get(), bytes});
    return std::nullopt;
  }

  void take_text(std::string_view keyword, std::string_view text) {
    if (keyword == "XML:com.adobe.xmp") xmp_ = text;
    if (keyword == "Raw profile type exif" && !text.empty()) raw_exif_ = unhex_raw_profile(text);
  }

  std::size_t total_text_bytes_ = 0;
  std::string exif_;
  std::string raw_exif_;
  std::string xmp_;
};

}  // namespace

std::optional<Rejection> read_png_metadata(std::span<const std::byte> file, ImageHeader& header) {
  header = {};
  Metadata metadata;
  std::uint64_t pixel_bits = 0;
  std::uint64_t compressed_bytes = 0;
  bool first = true;
  for (auto rest = file.subspan(kSignatureBytes); rest.size() >= kChunkHeaderBytes; first = false) {
    const std::size_t size = big_endian(rest);
    const std::string_view type = as_text(rest.subspan(4, 4));
    rest = rest.subspan(kChunkHeaderBytes);
    if (size > rest.size())
      return Rejection{RejectionStage::kDecode, "the file ends before the image does"};
    const auto data = rest.first(size);
    rest = rest.subspan(std::min(size + kCrcBytes, rest.size()));
    if (first) {
      if (type != "IHDR" || size != kIhdrBytes) break;
      header.width = big_endian(data);
      header.height = big_endian(data.subspan(4));
      pixel_bits = bits_per_pixel(data);
    }
    if (type == "IDAT") compressed_bytes += size;
    if (type == "IHDR" && !first)
      return Rejection{RejectionStage::kDecode, "the file has two PNG headers"};
    if (type == "IEND") break;
    if (auto rejection = metadata.take(type, data)) return rejection;
  }
  if (header.width == 0 || header.height == 0)
    return Rejection{RejectionStage::kDecode, "the file has no valid PNG header"};
  const auto pixels = static_cast<double>(header.width) * header.height;
  header.is_implausible = pixels * static_cast<double>(pixel_bits) / 8 >
                          static_cast<double>(compressed_bytes * kBestCompression);
  header.orientation = metadata.orientation();
  return std::nullopt;
}

}  // namespace precache
