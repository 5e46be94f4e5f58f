// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/exif.hpp"

#include "formats/shard/file_kind.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/pictures.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::bytes_of;
using test::exif_with_orientation;

constexpr std::size_t kPrefixBytes = 6;  // "Exif\0\0"

Bytes with_byte(Bytes bytes, std::size_t at, int value) {
  bytes[at] = static_cast<std::byte>(value);
  return bytes;
}

TEST_CASE("EXIF gives the orientation in either byte order", "[convert][exif]") {
  for (const bool little_endian : {true, false}) {
    for (int value = 0; value <= 9; ++value) {
      const Bytes exif = exif_with_orientation(value, little_endian);
      CHECK(exif_orientation(exif) == value);
      CHECK(exif_orientation(std::span(exif).subspan(kPrefixBytes)) == value);
      CHECK(orientation_of(exif, {}) == (value >= 1 && value <= 8 ? value : 1));
    }
  }
}

TEST_CASE("EXIF without an orientation has none", "[convert][exif]") {
  CHECK_FALSE(exif_orientation({}));
  CHECK_FALSE(exif_orientation(bytes_of("Exif")));
  CHECK_FALSE(exif_orientation(bytes_of("not a directory at all")));
  const Bytes exif = exif_with_orientation(6);
  const std::size_t entry = kPrefixBytes + 10;
  CHECK_FALSE(exif_orientation(with_byte(exif, entry, 0x13)));      // another tag
  CHECK_FALSE(exif_orientation(with_byte(exif, entry + 2, 2)));     // text
  CHECK_FALSE(exif_orientation(with_byte(exif, entry + 4, 2)));     // two numbers
  CHECK_FALSE(exif_orientation(with_byte(exif, entry - 2, 0)));     // no entries
  CHECK_FALSE(exif_orientation(with_byte(exif, kPrefixBytes, 0)));  // no TIFF
  CHECK(exif_orientation(with_byte(exif, entry + 2, 4)) == 6);      // a 32-bit number
  CHECK(orientation_of({}, {}) == 1);
}

TEST_CASE("EXIF that points anywhere is read within its bytes", "[convert][exif][malformed]") {
  for (const bool little_endian : {true, false}) {
    const Bytes whole = exif_with_orientation(6, little_endian);
    for (const std::uint64_t offset : {0ULL, 1ULL, 7ULL, 9ULL, 20ULL, 25ULL, 26ULL, 27ULL, 1000ULL,
                                       0x7fffffffULL, 0xfffffff0ULL, 0xffffffffULL}) {
      Bytes exif = whole;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t shift = 8 * (little_endian ? i : 3 - i);
        exif[kPrefixBytes + 4 + i] = static_cast<std::byte>(offset >> shift);
      }
      CHECK(orientation_of(exif, {}) == 1);
    }
    for (int count = 0; count < 256; ++count) {  // any number of entries
      const Bytes exif =
          with_byte(with_byte(whole, kPrefixBytes + 8, count), kPrefixBytes + 9, 255);
      static_cast<void>(exif_orientation(exif));
    }
  }
  SUCCEED();
}

TEST_CASE("EXIF cut or changed anywhere gives an orientation from 1 to 8",
          "[convert][exif][malformed]") {
  for (const bool little_endian : {true, false}) {
    const Bytes whole = exif_with_orientation(8, little_endian);
    for (std::size_t size = 0; size <= whole.size(); ++size) {
      const int orientation = orientation_of(test::cut(whole, size), {});
      const bool entry_is_whole = size >= kPrefixBytes + 22;
      CHECK(orientation == (entry_is_whole ? 8 : 1));
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (int value = 0; value < 256; ++value) {
        const int orientation = orientation_of(with_byte(whole, at, value), {});
        REQUIRE(orientation >= 1);
        REQUIRE(orientation <= 8);
      }
    }
  }
}

TEST_CASE("XMP is read if EXIF has no orientation", "[convert][exif]") {
  CHECK(xmp_orientation(bytes_of("<x tiff:Orientation=\"6\"/>")) == 6);
  CHECK(xmp_orientation(bytes_of("<tiff:Orientation>3</tiff:Orientation>")) == 3);
  CHECK_FALSE(xmp_orientation(bytes_of("")));
  CHECK_FALSE(xmp_orientation(bytes_of("tiff:Orientation")));
  CHECK_FALSE(xmp_orientation(bytes_of("tiff:Orientation=")));
  CHECK_FALSE(xmp_orientation(bytes_of("tiff:Orientation=\"")));
  CHECK_FALSE(xmp_orientation(bytes_of("tiff:Orientation=\"x\"")));
  CHECK_FALSE(xmp_orientation(bytes_of("tiff:Orientation>")));
  CHECK(xmp_orientation(bytes_of("tiff:Orientation=\"x tiff:Orientation>5<")) == 5);
  const Bytes xmp = bytes_of("tiff:Orientation=\"6\"");
  CHECK(orientation_of({}, xmp) == 6);
  CHECK(orientation_of(exif_with_orientation(3), xmp) == 3);
  CHECK(orientation_of({}, bytes_of("tiff:Orientation=\"9\"")) == 1);
  for (std::size_t size = 0; size < xmp.size(); ++size) {
    const int orientation = orientation_of({}, test::cut(xmp, size));
    CHECK(orientation == (size >= 19 ? 6 : 1));
  }
}

TEST_CASE("the kind of a file is detected from its first bytes", "[convert][kind]") {
  const auto picture = test::make_picture(3, 3);
  CHECK(image_file_kind(test::encode_jpeg(picture)) == "JPEG");
  CHECK(image_file_kind(test::encode_png(picture)) == "PNG");
  CHECK_FALSE(is_decoded(image_file_kind({})));
  CHECK_FALSE(is_decoded(image_file_kind(bytes_of("\xff\xd8"))));
  CHECK_FALSE(is_decoded(image_file_kind(bytes_of("\x89PNG\r\n\x1a"))));
  CHECK_FALSE(is_decoded(image_file_kind(bytes_of("\x89PNG\n\x1a\n        "))));
}

TEST_CASE("messages name the kind of other files", "[convert][kind]") {
  using namespace std::string_view_literals;
  for (const auto& [bytes, words] : std::vector<std::pair<std::string_view, std::string_view>>{
           {""sv, "an empty file"},
           {"RIFF\x10\0\0\0WEBPVP8 "sv, "WebP"},
           {"GIF89a"sv, "GIF"},
           {"BM\x36\0"sv, "BMP"},
           {"II*\0"sv, "TIFF"},
           {"MM\0*"sv, "TIFF"},
           {"\0\0\0\x1c"
            "ftypavif"sv,
            "AVIF"},
           {"<!DOCTYPE html>"sv, "an HTML page"},
           {"PK\x03\x04"sv, "a ZIP archive"},
           {"x"sv, "of an unknown kind"},
           {"RIFF"sv, "of an unknown kind"}}) {
    CAPTURE(words);
    const Bytes exact = bytes_of(bytes);
    CHECK_FALSE(is_decoded(image_file_kind(exact)));
    CHECK(describe_file(exact) == words);
  }
}

}  // namespace
}  // namespace precache
