// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/inflate.hpp"

#include <zlib.h>

#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

using test::Bytes;

/// Compresses with zlib, as gzip or in the zlib format.
Bytes deflated(const Bytes& bytes, bool as_gzip) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, as_gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes result(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

/// Half of it is random, so that it compresses, but not to almost nothing.
Bytes content(std::size_t size) {
  test::Random random(1);
  Bytes bytes = test::random_bytes(random, size);
  for (std::size_t i = 0; i < size; i += 2) bytes[i] = std::byte{'a'};
  return bytes;
}

TEST_CASE("the head of a compressed file is unpacked", "[formats]") {
  for (const bool as_gzip : {true, false}) {
    for (const std::size_t size : {0, 1, 1000, 300'000, 600'000}) {
      CAPTURE(as_gzip, size);
      const Bytes bytes = content(size);
      const Bytes file = deflated(bytes, as_gzip);
      const InflatedHead all = inflate_head(file, 1'000'000);
      CHECK(all.bytes == bytes);
      CHECK(all.is_whole);
      CHECK_FALSE(all.is_damaged);
      const InflatedHead some = inflate_head(file, 500);
      CHECK(some.bytes == test::cut(bytes, std::min<std::size_t>(size, 500)));
      CHECK(some.is_whole == (size < 500));
      CHECK_FALSE(some.is_damaged);
    }
  }
}

TEST_CASE("a truncated compressed file gives the data before the cut", "[formats][malformed]") {
  const Bytes bytes = content(2000);
  for (const bool as_gzip : {true, false}) {
    const Bytes file = deflated(bytes, as_gzip);
    for (std::size_t size = 0; size < file.size(); ++size) {
      CAPTURE(as_gzip, size);
      const InflatedHead head = inflate_head(test::cut(file, size), 10'000);
      CHECK(head.is_damaged);
      CHECK_FALSE(head.is_whole);
      CHECK(head.bytes == test::cut(bytes, head.bytes.size()));
    }
  }
}

TEST_CASE("random bytes after a compressed header do no harm", "[formats][malformed]") {
  const Bytes file = deflated(content(2000), true);
  test::Random random(2);
  for (int i = 0; i < 2000; ++i) {
    Bytes broken = file;
    broken[test::below(random, broken.size())] ^= static_cast<std::byte>(1 + random() % 255);
    CHECK(inflate_head(broken, 10'000).bytes.size() <= 10'000);
  }
}

/// Unpacks a file that comes in pieces of one size.
Bytes inflated(const Bytes& file, std::size_t piece) {
  Bytes result;
  Inflater inflater("x.gz");
  for (std::size_t at = 0; at < file.size(); at += piece) {
    // A buffer of exactly this size, so that ASan detects a read past its end.
    const Bytes part(file.begin() + static_cast<std::ptrdiff_t>(at),
                     file.begin() + static_cast<std::ptrdiff_t>(std::min(at + piece, file.size())));
    inflater.feed(part, [&](std::span<const std::byte> bytes) {
      result.insert(result.end(), bytes.begin(), bytes.end());
    });
  }
  inflater.finish();
  return result;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes result;
  for (const Bytes& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

TEST_CASE("the head of a file with several members spans them", "[formats]") {
  const Bytes file = joined({deflated(content(100), true), deflated(content(1000), true)});
  const Bytes bytes = joined({content(100), content(1000)});
  const InflatedHead head = inflate_head(file, 10'000);
  CHECK(head.bytes == bytes);
  CHECK(head.is_whole);
  const InflatedHead some = inflate_head(file, 150);
  CHECK(some.bytes == test::cut(bytes, 150));
  CHECK_FALSE(some.is_whole);
  CHECK_FALSE(some.is_damaged);
}

TEST_CASE("compressed files are unpacked from pieces of any size", "[formats]") {
  const Bytes zeros(300);
  for (const std::size_t piece : {1, 2, 3, 7, 64, 1000, 1 << 20}) {
    for (const std::size_t size : {0, 1, 5000, 3'000'000}) {
      if (piece < 64 && size > 5000) continue;  // takes long
      CAPTURE(piece, size);
      const Bytes bytes = content(size);
      const Bytes gzip = deflated(bytes, true);
      CHECK(inflated(gzip, piece) == bytes);
      CHECK(inflated(deflated(bytes, false), piece) == bytes);
      CHECK(inflated(joined({gzip, deflated(content(10), true), gzip}), piece) ==
            joined({bytes, content(10), bytes}));
      CHECK(inflated(joined({gzip, zeros}), piece) == bytes);
      CHECK(inflated(joined({deflated(bytes, false), Bytes(1)}), piece) == bytes);
      CHECK(inflated(joined({deflated(bytes, false), zeros}), piece) == bytes);
    }
  }
}

TEST_CASE("data after a compressed file, or missing data, is damage", "[formats][malformed]") {
  for (const bool as_gzip : {true, false}) {
    const Bytes file = deflated(content(500), as_gzip);
    for (const std::size_t piece : {1, 5, 10'000}) {
      CAPTURE(as_gzip, piece);
      for (std::size_t size = 0; size < file.size(); ++size) {
        CHECK_THROWS_WITH(inflated(test::cut(file, size), piece), test::contains("ends too early"));
      }
      for (const std::size_t more : {1, 3, 4, 8, 100}) {
        CHECK_THROWS_WITH(inflated(joined({file, Bytes(more, std::byte{'x'})}), piece),
                          test::contains("more data after"));
      }
      CHECK_THROWS_AS(inflated(joined({file, Bytes(9), file}), piece), CorruptData);
    }
  }
}

TEST_CASE("any flipped byte of a compressed file is detected", "[formats][malformed]") {
  for (const bool as_gzip : {true, false}) {
    const Bytes file = deflated(content(300), as_gzip);
    for (std::size_t i = 0; i < file.size(); ++i) {
      if (as_gzip && i >= 3 && i < 10)
        continue;  // flags, time and system, which no checksum covers
      CAPTURE(as_gzip, i);
      Bytes broken = file;
      broken[i] ^= std::byte{0x21};
      CHECK_THROWS_AS(inflated(broken, 64), CorruptData);
    }
  }
}

}  // namespace
}  // namespace precache
