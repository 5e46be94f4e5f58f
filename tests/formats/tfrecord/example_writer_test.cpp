// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/example_writer.hpp"

#include "formats/os/file.hpp"
#include "formats/shard/scan.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("an Example of any size is read again", "[formats][tfrecord][roundtrip]") {
  // Around the sizes at which the lengths before the value get longer.
  for (const std::size_t bytes : {0, 1, 90, 100, 110, 127, 128, 129, 16000, 16383, 16384, 70000}) {
    for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{300}}) {
      CAPTURE(bytes, label);
      tfrecord::ExampleWriter writer;
      writer.add_integer("image/class/label", label);
      writer.add_bytes("image/encoded", std::string(bytes, 'x'));
      writer.add_bytes("key", "some/key");
      const std::string record = std::move(writer).record();
      const ShardIndex index = scan_shard(as_bytes(record), "x.tfrecord");
      REQUIRE(index.samples == 1);
      REQUIRE(index.places.size() == 1);
      CHECK(index.places[0].payload_bytes == bytes);
      CHECK(record.substr(index.places[0].payload, bytes) == std::string(bytes, 'x'));
      CHECK(index.places[0].label == label);
      CHECK(index.keys == "some/key");
    }
  }
}

}  // namespace
}  // namespace precache
