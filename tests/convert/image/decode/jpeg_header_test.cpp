// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/jpeg_decoder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/pictures.hpp"

namespace precache {
namespace {

using test::Bytes;

Bytes small_jpeg(int orientation = 6) {
  test::JpegOptions options;
  options.app1 = test::exif_with_orientation(orientation);
  return test::encode_jpeg(test::make_picture(23, 17), options);
}

/// The offset of the segment with this marker.
std::size_t find_marker(const Bytes& jpeg, int marker) {
  for (std::size_t at = 2; at + 4 <= jpeg.size();) {
    if (std::to_integer<int>(jpeg[at + 1]) == marker) return at;
    at += 2 + (std::to_integer<std::size_t>(jpeg[at + 2]) << 8 |
               std::to_integer<std::size_t>(jpeg[at + 3]));
  }
  return 0;
}

std::size_t segment_end(const Bytes& jpeg, std::size_t at) {
  return at + 2 +
         (std::to_integer<std::size_t>(jpeg[at + 2]) << 8 |
          std::to_integer<std::size_t>(jpeg[at + 3]));
}

/// Inserts bytes between two segments.
Bytes with_bytes_at(const Bytes& jpeg, std::size_t at, std::string_view extra) {
  Bytes result = jpeg;
  const Bytes bytes = test::bytes_of(extra);
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
  return result;
}

TEST_CASE("a JPEG header gives size and orientation", "[convert][jpeg]") {
  ImageHeader header;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CHECK_FALSE(read_jpeg_header(small_jpeg(orientation), header));
    CHECK(header.width == 23);
    CHECK(header.height == 17);
    CHECK(header.orientation == orientation);
  }
  // One file does not affect the next.
  CHECK_FALSE(read_jpeg_header(test::encode_jpeg(test::make_picture(5, 4)), header));
  CHECK(header.width == 5);
  CHECK(header.orientation == 1);
}

TEST_CASE("a JPEG header cut anywhere is rejected unless it is complete",
          "[convert][jpeg][malformed]") {
  const Bytes whole = small_jpeg();
  const std::size_t scan = find_marker(whole, 0xda);
  REQUIRE(scan != 0);
  const std::size_t header_end = segment_end(whole, scan);
  for (std::size_t size = 3; size <= whole.size(); ++size) {
    ImageHeader header;
    const auto rejection = read_jpeg_header(test::cut(whole, size), header);
    CAPTURE(size);
    REQUIRE(rejection.has_value() == (size < header_end));
    if (rejection) {
      REQUIRE(rejection->stage == RejectionStage::kDecode);
      REQUIRE(!rejection->reason.empty());
    } else {
      REQUIRE(header.width == 23);
      REQUIRE(header.orientation == 6);
    }
  }
}

TEST_CASE("a JPEG header with any byte changed is read within its bytes",
          "[convert][jpeg][malformed]") {
  const Bytes whole = small_jpeg();
  const std::size_t header_end = segment_end(whole, find_marker(whole, 0xda));
  for (std::size_t at = 2; at < header_end; ++at) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xc0, 0xc4, 0xd8, 0xd9, 0xda, 0xe1, 0xff}) {
      Bytes changed = test::cut(whole, header_end);
      changed[at] = static_cast<std::byte>(value);
      ImageHeader header;
      const auto rejection = read_jpeg_header(changed, header);
      if (rejection) continue;
      REQUIRE(header.width > 0);
      REQUIRE(header.height > 0);
      REQUIRE(header.orientation >= 1);
      REQUIRE(header.orientation <= 8);
    }
  }
}

TEST_CASE("bytes between JPEG segments are skipped, as in Pillow", "[convert][jpeg]") {
  const Bytes whole = small_jpeg();
  const std::size_t tables = find_marker(whole, 0xdb);
  for (const std::string_view extra :
       {std::string_view("\xff\xff\xff", 3), std::string_view("ab\0c", 4),
        std::string_view("\xff\0", 2)}) {
    ImageHeader header;
    CHECK_FALSE(read_jpeg_header(with_bytes_at(whole, tables, extra), header));
    CHECK(header.width == 23);
  }
}

TEST_CASE("JPEG headers of kinds that are not supported are rejected with a reason",
          "[convert][jpeg][malformed]") {
  const Bytes whole = small_jpeg();
  const std::size_t frame = find_marker(whole, 0xc0);
  REQUIRE(frame != 0);
  const auto reason = [&](std::size_t offset, int value) {
    Bytes changed = whole;
    changed[frame + offset] = static_cast<std::byte>(value);
    ImageHeader header;
    const auto rejection = read_jpeg_header(changed, header);
    REQUIRE(rejection);
    return rejection->reason;
  };
  CHECK_THAT(reason(4, 12), test::contains("12 bits"));
  CHECK_THAT(reason(9, 2), test::contains("2 components"));
  CHECK_THAT(reason(9, 0), test::contains("0 components"));
  CHECK_THAT(reason(8, 0), test::contains("no size"));    // width
  CHECK_THAT(reason(6, 0), test::contains("no size"));    // height
  CHECK_THAT(reason(3, 5), test::contains("too short"));  // the segment's own length
  ImageHeader header;
  CHECK(read_jpeg_header(with_bytes_at(whole, frame, "\xff\x02"), header));  // reserved marker
  CHECK(read_jpeg_header(test::bytes_of("\xff\xd8\xff\xd9"), header));
}

TEST_CASE("a JPEG header that claims more pixels than its bytes can hold is implausible",
          "[convert][jpeg][malformed]") {
  ImageHeader header;
  Bytes file = small_jpeg();
  CHECK_FALSE(read_jpeg_header(file, header));
  CHECK_FALSE(header.is_implausible);
  file[find_marker(file, 0xc0) + 5] = std::byte{0xff};  // 17 rows become 65,297
  CHECK_FALSE(read_jpeg_header(file, header));
  CHECK(header.height == 65'297);
  CHECK(header.is_implausible);
  // A picture of one colour is as small as a JPEG can be, and plausible.
  test::Picture even{4000, 3000, 3, std::vector<std::uint8_t>(std::size_t{4000} * 3000 * 3, 128)};
  for (const bool progressive : {false, true}) {
    CHECK_FALSE(read_jpeg_header(test::encode_jpeg(even, {1, 2, 2, progressive}), header));
    CHECK_FALSE(header.is_implausible);
  }
}

}  // namespace
}  // namespace precache
