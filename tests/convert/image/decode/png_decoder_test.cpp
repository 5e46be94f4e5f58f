// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/png_decoder.hpp"

#include <zlib.h>

#include "formats/os/file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/corpora.hpp"
#include "tests/support/decoding.hpp"
#include "tests/support/pictures.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::decode_all;
using test::decode_region;
using test::Decoded;
using test::Picture;
using test::same_colors;

void append_number(Bytes& bytes, std::uint64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<std::byte>(value >> shift));
}

Bytes chunk(std::string_view type, std::span<const std::byte> data) {
  Bytes bytes;
  append_number(bytes, data.size());
  const Bytes name = test::bytes_of(type);
  bytes.insert(bytes.end(), name.begin(), name.end());
  bytes.insert(bytes.end(), data.begin(), data.end());
  append_number(bytes, ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data() + 4),
                               static_cast<uInt>(bytes.size() - 4)));
  return bytes;
}

constexpr std::size_t kAfterHeader = 8 + 25;  // signature and IHDR

Bytes with_chunk(const Bytes& png, std::string_view type, std::span<const std::byte> data,
                 std::size_t at = kAfterHeader) {
  const Bytes extra = chunk(type, data);
  Bytes result = png;
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), extra.begin(), extra.end());
  return result;
}

Bytes deflated(std::string_view text) {
  uLongf size = ::compressBound(static_cast<uLong>(text.size()));
  Bytes bytes(size);
  ::compress(reinterpret_cast<Bytef*>(bytes.data()), &size,
             reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size()));
  bytes.resize(size);
  return bytes;
}

/// Four bytes per pixel, as the decoder gives them: gray copied to three channels, alpha dropped.
std::vector<std::uint8_t> expected_pixels(const Picture& picture) {
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    for (std::uint32_t x = 0; x < picture.width; ++x) {
      const std::uint8_t* pixel = picture.pixel(x, y);
      const bool gray = picture.channels == 1;
      pixels.insert(pixels.end(), {pixel[0], pixel[gray ? 0 : 1], pixel[gray ? 0 : 2], 255});
    }
  }
  return pixels;
}

TEST_CASE("a PNG decodes to its pixels", "[convert][png]") {
  PngDecoder decoder;
  test::Random random(1);
  for (const std::uint32_t channels : {1U, 3U, 4U}) {
    for (const bool interlaced : {false, true}) {
      for (const auto& [width, height] : {std::pair{1U, 1U}, {5U, 3U}, {3U, 5U}, {64U, 33U}}) {
        const Picture picture = test::make_picture(width, height, channels);
        const Bytes file = test::encode_png(picture, interlaced);
        const Decoded all = decode_all(decoder, file);
        CAPTURE(channels, interlaced, width, height);
        REQUIRE_FALSE(all.rejection);
        CHECK(all.header.width == width);
        CHECK(all.header.height == height);
        CHECK(all.header.orientation == 1);
        REQUIRE(same_colors(all.pixels, expected_pixels(picture)));
        for (int i = 0; i < 10; ++i) {
          const Region region = test::random_region(random, all.header);
          const Decoded part =
              decode_region(decoder, file, [&](const ImageHeader&) { return region; });
          REQUIRE_FALSE(part.rejection);
          REQUIRE(same_colors(part.pixels, test::part_of(all.pixels, width, region)));
        }
      }
    }
  }
}

TEST_CASE("a PNG cut anywhere is rejected unless all rows are complete",
          "[convert][png][malformed]") {
  PngDecoder decoder;
  for (const bool interlaced : {false, true}) {
    const Picture picture = test::make_picture(13, 9);
    const Bytes whole = test::encode_png(picture, interlaced);
    for (std::size_t size = 8; size < whole.size(); ++size) {
      for (const auto& choose : {test::whole_region, test::middle_region}) {
        const Decoded part = decode_region(decoder, test::cut(whole, size), choose);
        CAPTURE(interlaced, size);
        if (part.rejection) {
          REQUIRE(part.rejection->stage == RejectionStage::kDecode);
          continue;
        }
        REQUIRE(size >= whole.size() -
                            16);  // only IEND, 12 bytes, and the checksum before it may be missing
        REQUIRE(same_colors(part.pixels,
                            test::part_of(expected_pixels(picture), 13, choose(part.header))));
      }
    }
  }
}

TEST_CASE("a PNG with any byte changed is decoded or rejected", "[convert][png][malformed]") {
  PngDecoder decoder;
  for (const bool interlaced : {false, true}) {
    const Bytes whole = test::encode_png(test::make_picture(7, 5), interlaced);
    for (std::size_t at = 8; at < whole.size(); ++at) {
      for (const int change : {0x01, 0x20, 0x80, 0xff}) {
        Bytes changed = whole;
        changed[at] ^= static_cast<std::byte>(change);
        const Decoded decoded = decode_region(decoder, changed, [&](const ImageHeader& header) {
          return std::uint64_t{header.width} * header.height > 1'000'000
                     ? Region{0, 0, 1, 1}
                     : test::whole_region(header);
        });
        if (decoded.rejection) continue;
        REQUIRE(decoded.header.width > 0);
      }
    }
  }
}

TEST_CASE("the orientation of a PNG is read from all places", "[convert][png]") {
  PngDecoder decoder;
  const Bytes png = test::encode_png(test::make_picture(4, 3));
  const auto orientation = [&](const Bytes& file) {
    ImageHeader header;
    CHECK_FALSE(decoder.open(file, header));
    return header.orientation;
  };
  const Bytes exif = test::exif_with_orientation(6);
  const auto tiff = std::span(exif).subspan(6);
  CHECK(orientation(png) == 1);
  CHECK(orientation(with_chunk(png, "eXIf", tiff)) == 6);
  CHECK(orientation(with_chunk(png, "eXIf", tiff, png.size() - 12)) == 6);  // after the pixels
  const std::string xmp = "<x tiff:Orientation=\"8\"/>";
  CHECK(orientation(with_chunk(
            png, "iTXt", test::bytes_of(std::string("XML:com.adobe.xmp\0\0\0\0\0", 22) + xmp))) ==
        8);
  Bytes packed = test::bytes_of(std::string("XML:com.adobe.xmp\0\1\0\0\0", 22));
  const Bytes stream = deflated(xmp);
  packed.insert(packed.end(), stream.begin(), stream.end());
  CHECK(orientation(with_chunk(png, "iTXt", packed)) == 8);
  std::string hex = std::string("Raw profile type exif\0\nexif\n      36\n", 37);
  for (const std::byte byte : exif) {
    hex += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
    hex += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
  }
  CHECK(orientation(with_chunk(png, "tEXt", test::bytes_of(hex))) == 6);
}

TEST_CASE("PNG text chunks of any content are read within their bytes",
          "[convert][png][malformed]") {
  PngDecoder decoder;
  const Bytes png = test::encode_png(test::make_picture(4, 3));
  const std::string keyword = std::string("Raw profile type exif\0", 22);
  for (const std::string_view type : {"tEXt", "zTXt", "iTXt", "iCCP", "eXIf"}) {
    for (const std::string& data :
         {std::string(), std::string("\0", 1), std::string("\0\0", 2), std::string("abc"), keyword,
          keyword + "\n", keyword + "\n\n", keyword + "\n\n\n", keyword + "\n\n\n4",
          keyword + "\n\n\n49492a00", keyword + std::string(3, '\0'),
          std::string("XML:com.adobe.xmp\0", 18), std::string("XML:com.adobe.xmp\0\1", 19),
          keyword + "\x78\x9c"}) {
      ImageHeader header;
      const Bytes file = with_chunk(png, type, test::bytes_of(data));
      CAPTURE(type, data);
      CHECK_FALSE(decoder.open(test::cut(file, file.size()), header));
      CHECK(header.orientation == 1);
    }
  }
}

TEST_CASE("PNG text that inflates beyond bounds is rejected", "[convert][png][malformed]") {
  PngDecoder decoder;
  const Bytes png = test::encode_png(test::make_picture(4, 3));
  Bytes bomb = test::bytes_of(std::string("k\0\0", 3));
  const Bytes stream = deflated(std::string(std::size_t{64} << 20, 'x'));
  bomb.insert(bomb.end(), stream.begin(), stream.end());
  for (const std::string_view type : {"zTXt", "iCCP"}) {
    ImageHeader header;
    const auto rejection = decoder.open(with_chunk(png, type, bomb), header);
    REQUIRE(rejection);
    CHECK(rejection->stage == RejectionStage::kLimit);
  }
}

TEST_CASE("invalid PNG headers are rejected", "[convert][png][malformed]") {
  PngDecoder decoder;
  ImageHeader header;
  const Bytes png = test::encode_png(test::make_picture(4, 3));
  CHECK(decoder.open(test::cut(png, 8), header));
  CHECK(decoder.open(with_chunk(png, "tEXt", test::bytes_of("a"), 8),
                     header));  // not the first chunk
  CHECK(decoder.open(with_chunk(png, "IHDR", std::span(png).subspan(16, 13)), header));
  Bytes empty = png;
  for (std::size_t i = 16; i < 20; ++i) empty[i] = std::byte{0};
  CHECK(decoder.open(empty, header));
}

TEST_CASE("a PNG header that claims more pixels than its bytes can hold is implausible",
          "[convert][png][malformed]") {
  PngDecoder decoder;
  ImageHeader header;
  // A picture of one colour is as small as a PNG can be, and plausible.
  for (const std::uint32_t channels : {1U, 3U, 4U}) {
    const std::size_t samples = std::size_t{4000} * 3000 * channels;
    const Picture even{4000, 3000, channels, std::vector<std::uint8_t>(samples)};
    CHECK_FALSE(decoder.open(test::encode_png(even), header));
    CHECK_FALSE(header.is_implausible);
  }
  Bytes file = test::encode_png(test::make_picture(4, 3));
  for (std::size_t i = 17; i < 20; ++i) file[i] = std::byte{0xff};  // 16,777,215 pixels wide
  CHECK_FALSE(decoder.open(file, header));
  CHECK(header.is_implausible);
}

TEST_CASE("any region of third-party PNGs equals that part of the whole", "[convert][png]") {
  const auto files = test::corpus("png-good", test::kPngExtensions);
  if (files.empty()) PRECACHE_SKIP("there is no corpus png-good");
  PngDecoder decoder;
  test::Random random(2);
  std::size_t decoded = 0;
  for (const auto& path : files) {
    const Bytes file = read_file(path);
    CAPTURE(path.filename().string());
    const Decoded all = decode_all(decoder, file);
    if (all.rejection) continue;
    ++decoded;
    const Region region = test::random_region(random, all.header);
    const Decoded part = decode_region(decoder, file, [&](const ImageHeader&) { return region; });
    REQUIRE_FALSE(part.rejection);
    REQUIRE(same_colors(part.pixels, test::part_of(all.pixels, all.header.width, region)));
  }
  CHECK(decoded * 100 > files.size() * 95);
}

}  // namespace
}  // namespace precache
