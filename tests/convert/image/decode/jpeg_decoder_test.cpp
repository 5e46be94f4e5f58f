// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/jpeg_decoder.hpp"

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
using test::Random;
using test::same_colors;

std::string describe(const Region& region) {
  return std::to_string(region.x) + "," + std::to_string(region.y) + " " +
         std::to_string(region.width) + "x" + std::to_string(region.height);
}

/// A single column at the left edge, which has its own test.
bool is_left_column(const Region& region) { return region.x == 0 && region.width == 1; }

/// Any region must equal that part of the whole. False if the file is rejected.
bool check_regions(JpegDecoder& decoder, const Bytes& file, Random& random, int regions) {
  const Decoded all = decode_all(decoder, file);
  if (all.rejection) return false;
  REQUIRE(all.pixels.size() == std::size_t{all.header.width} * all.header.height * kPixelBytes);
  const auto check = [&](const Region& region) {
    if (is_left_column(region)) return;
    const Decoded part = decode_region(decoder, file, [&](const ImageHeader&) { return region; });
    CAPTURE(describe(region));
    REQUIRE_FALSE(part.rejection);
    REQUIRE(same_colors(part.pixels, test::part_of(all.pixels, all.header.width, region)));
  };
  check(test::middle_region(all.header));
  check({all.header.width - 1, all.header.height - 1, 1, 1});
  for (int i = 0; i < regions; ++i) check(test::random_region(random, all.header));
  return true;
}

std::vector<test::JpegOptions> all_options() {
  std::vector<test::JpegOptions> all;
  for (const bool progressive : {false, true}) {
    for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}}) {
      for (const int restart_rows : {0, 1}) {
        test::JpegOptions options{85, h, v, progressive, restart_rows};
        all.push_back(options);
      }
    }
  }
  return all;
}

TEST_CASE("a JPEG decodes to what libjpeg gives", "[convert][jpeg]") {
  JpegDecoder decoder;
  for (const auto& options : all_options()) {
    for (const std::uint32_t channels : {1U, 3U}) {
      const Bytes file = test::encode_jpeg(test::make_picture(61, 47, channels), options);
      const Decoded decoded = decode_all(decoder, file);
      CAPTURE(options.progressive, options.horizontal_sampling, options.vertical_sampling,
              channels);
      REQUIRE_FALSE(decoded.rejection);
      CHECK_FALSE(decoded.warned);
      CHECK(same_colors(decoded.pixels, test::decode_jpeg_plainly(file)));
    }
  }
}

TEST_CASE("any region of a JPEG equals that part of the whole", "[convert][jpeg]") {
  JpegDecoder decoder;
  Random random(1);
  for (const auto& options : all_options()) {
    for (const auto& [width, height] :
         {std::pair{61U, 47U}, {16U, 16U}, {97U, 130U}, {1U, 40U}, {40U, 1U}, {7U, 7U}}) {
      const Bytes file = test::encode_jpeg(test::make_picture(width, height), options);
      CAPTURE(options.progressive, options.horizontal_sampling, options.vertical_sampling, width,
              height);
      REQUIRE(check_regions(decoder, file, random, 25));
    }
  }
  for (const std::uint32_t channels : {1U, 4U}) {
    REQUIRE(check_regions(decoder, test::encode_jpeg(test::make_picture(61, 47, channels)), random,
                          50));
  }
}

TEST_CASE("any region of a JPEG that lacks coefficients equals that part of the whole",
          "[convert][jpeg]") {
  // libjpeg guesses them from neighbouring blocks, so a region must include these.
  JpegDecoder decoder;
  Random random(6);
  for (const bool coarse : {false, true}) {
    test::JpegOptions options;
    options.means_only = !coarse;
    options.coarse_means_only = coarse;
    for (const auto& [width, height] : {std::pair{97U, 130U}, {200U, 50U}, {30U, 30U}}) {
      const Bytes file = test::encode_jpeg(test::make_picture(width, height), options);
      CAPTURE(coarse, width, height);
      REQUIRE(same_colors(decode_all(decoder, file).pixels, test::decode_jpeg_plainly(file)));
      REQUIRE(check_regions(decoder, file, random, 30));
    }
  }
}

TEST_CASE("the left column of a JPEG equals that part of the whole", "[convert][jpeg]") {
  // libjpeg upsamples an image of one chroma column by another rule than a wider one.
  JpegDecoder decoder;
  for (const auto& options : all_options()) {
    const Bytes file = test::encode_jpeg(test::make_picture(61, 47), options);
    const Region region{0, 10, 1, 20};
    const Decoded all = decode_all(decoder, file);
    const Decoded part = decode_region(decoder, file, [&](const ImageHeader&) { return region; });
    CAPTURE(options.progressive, options.horizontal_sampling, options.vertical_sampling);
    CHECK(same_colors(part.pixels, test::part_of(all.pixels, all.header.width, region)));
  }
}

TEST_CASE("any region of third-party JPEGs equals that part of the whole", "[convert][jpeg]") {
  const auto files = test::corpus("jpeg-good", test::kJpegExtensions);
  if (files.empty()) PRECACHE_SKIP("there is no corpus jpeg-good");
  JpegDecoder decoder;
  Random random(2);
  int decoded = 0;
  for (const auto& path : files) {
    CAPTURE(path.filename().string());
    decoded += check_regions(decoder, read_file(path), random, 12) ? 1 : 0;
  }
  CHECK(decoded * 10 > static_cast<int>(files.size()) * 8);
}

TEST_CASE("any region of photos equals that part of the whole", "[convert][jpeg]") {
  const auto files = test::corpus("imagenet-sample", test::kJpegExtensions);
  if (files.empty()) PRECACHE_SKIP("there is no corpus imagenet-sample");
  JpegDecoder decoder;
  Random random(3);
  for (const auto& path : files) {
    CAPTURE(path.filename().string());
    REQUIRE(check_regions(decoder, read_file(path), random, 4));
  }
}

TEST_CASE("a JPEG without tables does not use those of the file before it", "[convert][jpeg]") {
  const auto path = test::corpora() / "jpeg-good/jpeg-decoder/mjpeg.jpg";
  if (!std::filesystem::exists(path)) PRECACHE_SKIP("there is no corpus jpeg-good");
  const Bytes file = read_file(path);
  JpegDecoder fresh;
  const Decoded alone = decode_all(fresh, file);
  JpegDecoder used;
  for (const auto& options : all_options()) {
    static_cast<void>(decode_all(used, test::encode_jpeg(test::make_picture(40, 40), options)));
    const Decoded after = decode_all(used, file);
    CHECK(after.rejection.has_value() == alone.rejection.has_value());
    CHECK(after.pixels == alone.pixels);
  }
}

/// Checks that a cut file is accepted only with the pixels of the whole. Returns the number of
/// accepted cuts.
std::size_t check_truncation(const Bytes& file, std::size_t size) {
  JpegDecoder decoder;
  std::size_t accepted = 0;
  const Bytes cut_file = test::cut(file, size);
  for (const auto& choose : {test::whole_region, test::middle_region}) {
    const Decoded whole = decode_region(decoder, file, choose);
    REQUIRE_FALSE(whole.rejection);
    const Decoded part = decode_region(decoder, cut_file, choose);
    CAPTURE(size);
    if (part.rejection) {
      REQUIRE(part.rejection->stage == RejectionStage::kDecode);
    } else {
      REQUIRE(same_colors(part.pixels, whole.pixels));
      ++accepted;
    }
  }
  return accepted;
}

TEST_CASE("a JPEG cut anywhere is rejected unless all rows are complete",
          "[convert][jpeg][malformed]") {
  for (const bool progressive : {false, true}) {
    for (const int restart_rows : {0, 1}) {
      const Bytes file =
          test::encode_jpeg(test::make_picture(40, 33), {75, 2, 2, progressive, restart_rows});
      std::size_t accepted = 0;
      for (std::size_t size = 3; size < file.size(); ++size)
        accepted += check_truncation(file, size);
      CAPTURE(progressive, restart_rows);
      CHECK(accepted <= 20);  // at most those that lack the last few bytes
    }
  }
}

TEST_CASE("a photo cut anywhere is rejected unless all rows are complete",
          "[convert][jpeg][malformed]") {
  const auto files = test::corpus("imagenet-sample", test::kJpegExtensions);
  if (files.empty()) PRECACHE_SKIP("there is no corpus imagenet-sample");
  Random random(4);
  for (std::size_t i = 0; i < files.size(); i += 12) {
    const Bytes file = read_file(files[i]);
    CAPTURE(files[i].filename().string());
    std::size_t accepted = 0;
    for (int cut = 0; cut < 8; ++cut)
      accepted += check_truncation(file, 3 + test::below(random, file.size() - 200));
    CHECK(accepted == 0);
    for (std::size_t less = 1; less < 6; ++less) check_truncation(file, file.size() - less);
  }
}

TEST_CASE("a JPEG with any bytes changed is decoded or rejected", "[convert][jpeg][malformed]") {
  Random random(5);
  JpegDecoder decoder;
  for (const bool progressive : {false, true}) {
    const Bytes file = test::encode_jpeg(test::make_picture(40, 33), {75, 2, 2, progressive, 1});
    for (int round = 0; round < 3000; ++round) {
      Bytes changed = file;
      for (int i = 0; i <= round % 4; ++i) {
        changed[2 + test::below(random, file.size() - 2)] = static_cast<std::byte>(random());
      }
      const Decoded decoded = decode_region(decoder, changed, [&](const ImageHeader& header) {
        return std::uint64_t{header.width} * header.height > 1'000'000
                   ? Region{0, 0, 1, 1}
                   : test::random_region(random, header);
      });
      if (decoded.rejection) REQUIRE(!decoded.rejection->reason.empty());
    }
  }
}

TEST_CASE("damage that libjpeg only warns about is counted", "[convert][jpeg][malformed]") {
  JpegDecoder decoder;
  const Bytes file = test::encode_jpeg(test::make_picture(64, 64), {75, 2, 2, false, 1});
  std::size_t warned = 0;
  std::size_t rejected = 0;
  for (std::size_t at = file.size() - 400; at < file.size() - 2; ++at) {
    Bytes changed = file;
    changed[at] ^= std::byte{0x55};
    const Decoded decoded = decode_all(decoder, changed);
    warned += decoded.warned ? 1 : 0;
    rejected += decoded.rejection ? 1 : 0;
  }
  CHECK(warned > 50);
  CHECK(rejected < 50);
  CHECK_FALSE(decode_all(decoder, file).warned);  // the warning is reset
}

TEST_CASE("bytes after the end of a JPEG are ignored", "[convert][jpeg]") {
  JpegDecoder decoder;
  Bytes file = test::encode_jpeg(test::make_picture(50, 40));
  const Decoded before = decode_region(decoder, file, test::middle_region);
  for (const std::byte byte : {std::byte{0}, std::byte{0xff}, std::byte{0xd9}, std::byte{'x'}}) {
    file.push_back(byte);
    const Decoded after = decode_region(decoder, file, test::middle_region);
    CHECK_FALSE(after.rejection);
    CHECK(after.pixels == before.pixels);
  }
}

}  // namespace
}  // namespace precache
