// SPDX-License-Identifier: Apache-2.0
#include "formats/base/inflate.hpp"

#include <zlib.h>

#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

using test::Bytes;

/// By zlib, as gzip or in its own format.
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

/// Half of it random, so that it neither stays as it is nor vanishes.
Bytes content(std::size_t size) {
  test::Random random(1);
  Bytes bytes = test::random_bytes(random, size);
  for (std::size_t i = 0; i < size; i += 2) bytes[i] = std::byte{'a'};
  return bytes;
}

TEST_CASE("the head of what is compressed", "[formats]") {
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

TEST_CASE("a compressed file with more members is not whole", "[formats]") {
  Bytes file = deflated(content(100), true);
  const Bytes second = deflated(content(1000), true);
  file.insert(file.end(), second.begin(), second.end());
  const InflatedHead head = inflate_head(file, 10'000);
  CHECK(head.bytes == content(100));
  CHECK_FALSE(head.is_whole);
  CHECK_FALSE(head.is_damaged);
}

TEST_CASE("a compressed file that is cut gives what is there", "[formats][malformed]") {
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

TEST_CASE("compressed rubbish does no harm", "[formats][malformed]") {
  const Bytes file = deflated(content(2000), true);
  test::Random random(2);
  for (int i = 0; i < 2000; ++i) {
    Bytes broken = file;
    broken[test::below(random, broken.size())] ^= static_cast<std::byte>(1 + random() % 255);
    CHECK(inflate_head(broken, 10'000).bytes.size() <= 10'000);
  }
}

}  // namespace
}  // namespace precache
