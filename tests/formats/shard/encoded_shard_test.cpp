// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/encoded_shard.hpp"

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/scan.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

TEST_CASE("an encoded image of any size is read again", "[formats][tar][tfrecord][roundtrip]") {
  const test::TempFolder folder;
  for (const Format format : {Format::kTar, Format::kTfrecord}) {
    // Around the sizes at which the lengths before the value get longer.
    for (const std::size_t bytes :
         {0, 1, 90, 100, 110, 127, 128, 129, 16000, 16383, 16384, 70000}) {
      for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{300}}) {
        CAPTURE(name(format), bytes, label);
        const auto path = folder / ("shard" + std::string(extension(format)));
        const std::string image(bytes, 'x');
        const auto shard = make_encoded_shard(format, path);
        shard->append({{"some/key", label}, "jpg", "cat", as_bytes(image)});
        const EncodedShard::Written written = shard->finish();
        const auto file = read_file(path);
        CHECK(written.bytes == file.size());
        CHECK(written.crc32c == crc32c::value(file));
        const ShardIndex index = scan_shard(file, path);
        REQUIRE(index.samples == 1);
        REQUIRE(index.places.size() == 1);
        CHECK(index.places[0].payload_bytes == bytes);
        CHECK(as_text(file).substr(index.places[0].payload, bytes) == image);
        CHECK(index.places[0].label == label);
        CHECK(index.keys == "some/key");
      }
    }
  }
}

}  // namespace
}  // namespace precache
