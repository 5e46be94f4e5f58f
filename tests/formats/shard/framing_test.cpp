// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/framing.hpp"

#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::kFormats;
using test::spec_of;

const std::vector<SampleName> kNames{
    {"a", 0}, {"b/c d", -1}, {"long/" + std::string(60, 'k'), 999}, {"z", 7}};

TEST_CASE("formats have names and extensions", "[formats][framing]") {
  CHECK(name(Format::kTar) == "tar");
  CHECK(name(Format::kTfrecord) == "tfrecord");
  CHECK(name(Format::kHdf5) == "hdf5");
  CHECK(extension(Format::kTar) == ".tar");
  CHECK(extension(Format::kTfrecord) == ".tfrecord");
  CHECK(extension(Format::kHdf5) == ".h5");
  for (const Format format : kFormats) CHECK(parse_format(name(format)) == format);
  for (const char* text : {"", "TAR", ".tar", "h5", "zip"}) {
    CHECK_THROWS_AS(parse_format(text), InvalidArgument);
  }
}

TEST_CASE("name limits cover every name that was included", "[formats][framing]") {
  NameLimits limits;
  CHECK(limits.longest_key == 1);
  CHECK(limits.all_fit_ustar);
  limits.include("abc", 5);
  limits.include("ab", -7);
  limits.include("abcd", 3);
  CHECK(limits.longest_key == 4);
  CHECK(limits.smallest_label == -7);
  CHECK(limits.largest_label == 5);
  CHECK(limits.all_fit_ustar);
  limits.include(std::string(96, 'x'), 0);
  CHECK(limits.all_fit_ustar);
  limits.include(std::string(97, 'x'), 0);
  CHECK_FALSE(limits.all_fit_ustar);
  limits.include("short", 0);
  CHECK_FALSE(limits.all_fit_ustar);
}

TEST_CASE("a shard is a prologue, equal records and an epilogue", "[formats][framing]") {
  for (const Format format : kFormats) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{3}, kNames.size()}) {
      CAPTURE(name(format), count);
      const auto spec = spec_of(5, 7, 3, DType::kFloat16);
      const auto framing = test::make_framing(format, spec, test::limits_of(kNames), {"x", "y"});
      const auto names = std::span(kNames).first(count);
      const auto samples = test::make_samples(names, spec.size_bytes());
      const Bytes shard = test::assemble(*framing, samples);
      CHECK(shard.size() == framing->shard_bytes(count));
      CHECK(test::envelope_of(*framing, names).prologue.size() == framing->records_base());
      const ShardColumns columns = framing->columns(count);
      CHECK(columns.image.base == framing->records_base() + framing->tensor_offset());
      CHECK(columns.image.stride == framing->record_bytes());
      CHECK(columns.image.base % 64 == 0);
      for (std::size_t i = 0; i < count; ++i) {
        const auto at = columns.image.base + i * columns.image.stride;
        CHECK(
            std::ranges::equal(std::span(shard).subspan(at, spec.size_bytes()), samples[i].tensor));
      }
    }
  }
}

TEST_CASE("framing writes every byte around the tensor and none of the tensor",
          "[formats][framing]") {
  for (const Format format : kFormats) {
    CAPTURE(name(format));
    const auto spec = spec_of(3, 5, 3);
    const auto framing = test::make_framing(format, spec, test::limits_of(kNames), {});
    test::Random random(4);
    const Bytes tensor = test::random_bytes(random, spec.size_bytes());
    for (const SampleName& sample : kNames) {
      const auto first = test::frame(*framing, sample, tensor);
      Bytes other(framing->record_bytes(), std::byte{0x3c});
      std::copy(tensor.begin(), tensor.end(),
                other.begin() + static_cast<std::ptrdiff_t>(framing->tensor_offset()));
      CHECK(framing->frame(other, sample, crc32c::value(tensor)) == first.crc);
      CHECK(other == first.bytes);
      CHECK(first.crc == crc32c::value(first.bytes));
      CHECK(std::ranges::equal(std::span(other).subspan(framing->tensor_offset(), tensor.size()),
                               tensor));
    }
  }
}

TEST_CASE("a tensor that changes after its CRC was computed does not match its CRC",
          "[formats][framing]") {
  for (const Format format : kFormats) {
    CAPTURE(name(format));
    const auto spec = spec_of(3, 5, 3);
    const auto framing = test::make_framing(format, spec, test::limits_of(kNames), {});
    test::Random random(5);
    const Bytes tensor = test::random_bytes(random, spec.size_bytes());
    const auto record = test::frame(*framing, kNames[0], tensor);
    Bytes changed = record.bytes;
    changed[framing->tensor_offset() + 7] ^= std::byte{1};
    const Bytes before = changed;
    CHECK(framing->frame(changed, kNames[0], crc32c::value(tensor)) == record.crc);
    CHECK(changed == before);  // with the CRCs of the original record
    CHECK(crc32c::value(changed) != record.crc);
  }
}

TEST_CASE("a shard without samples is complete", "[formats][framing]") {
  for (const Format format : kFormats) {
    for (const std::vector<std::string>& classes : {std::vector<std::string>{}, {"a", "bcd"}}) {
      CAPTURE(name(format), classes.size());
      const auto framing =
          test::make_framing(format, spec_of(4, 4, 3), test::limits_of(kNames), classes);
      CHECK(test::assemble(*framing, {}).size() == framing->shard_bytes(0));
    }
  }
}

TEST_CASE("a shard size of more than 64 bits is refused", "[formats][framing][malformed]") {
  const auto samples = std::uint64_t{1} << 60;
  for (const Format format : {Format::kTar, Format::kTfrecord}) {
    const auto framing =
        test::make_framing(format, spec_of(100, 100, 3), test::limits_of(kNames), {});
    CHECK_THROWS_AS(framing->shard_bytes(samples), InvalidArgument);
  }
}

TEST_CASE("an hdf5 shard size of more than 64 bits is refused",
          "[formats][framing][hdf5][malformed]") {
  const auto framing =
      test::make_framing(Format::kHdf5, spec_of(100, 100, 3), test::limits_of(kNames), {});
  CHECK_THROWS_AS(framing->shard_bytes(std::uint64_t{1} << 60), InvalidArgument);
}

TEST_CASE("a tensor that a format cannot hold is refused", "[formats][framing][malformed]") {
  const auto limits = test::limits_of(kNames);
  // A tf.train.Example ends at 2 GiB.
  CHECK_THROWS_AS(test::make_framing(Format::kTfrecord, spec_of(32768, 32768, 3), limits, {}),
                  InvalidArgument);
  CHECK_NOTHROW(test::make_framing(Format::kTfrecord, spec_of(16384, 16384, 3), limits, {}));
  // More than 64 bits.
  const auto huge = spec_of(0xffffffffU, 0xffffffffU, 3);
  for (const Format format : kFormats) {
    CHECK_THROWS_AS(test::make_framing(format, huge, limits, {}), InvalidArgument);
  }
}

TEST_CASE("a tensor of 8 GiB does not fit in a tar entry and is refused",
          "[formats][framing][tar][malformed]") {
  // Eleven octal digits: 8 GiB less one byte.
  const auto limits = test::limits_of(kNames);
  CHECK_THROWS_AS(test::make_framing(Format::kTar, spec_of(65536, 65536, 3), limits, {}),
                  InvalidArgument);
  CHECK_THROWS_AS(
      test::make_framing(Format::kTar, spec_of(0xffffffffU, 0xffffffffU, 1), limits, {}),
      InvalidArgument);
}

}  // namespace
}  // namespace precache
