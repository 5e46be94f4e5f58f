// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "formats/bytes/crc32c.hpp"
#include "formats/shard/framing.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/protobuf.hpp"
#include "tests/support/shards.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::spec_of;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::string letters(std::size_t count) { return std::string(count, 'k'); }

/// The payload of a file that is exactly one TFRecord.
std::span<const std::byte> payload_of(std::span<const std::byte> record) {
  REQUIRE(record.size() > 16);
  const std::uint64_t length = test::little_endian(record.first(8));
  REQUIRE(length == record.size() - 16);
  REQUIRE(test::little_endian(record.subspan(8, 4)) ==
          crc32c::masked(crc32c::value(record.first(8))));
  const auto payload = record.subspan(12, length);
  REQUIRE(test::little_endian(record.last(4)) == crc32c::masked(crc32c::value(payload)));
  return payload;
}

/// Frames one record, walks over its bytes and compares the columns with the places found.
void check_record(const Framing& framing, const TensorSpec& spec, const SampleName& sample,
                  std::span<const std::byte> tensor) {
  const auto framed = test::frame(framing, sample, tensor);
  const std::span<const std::byte> record = framed.bytes;
  REQUIRE(framed.crc == crc32c::value(record));
  const auto features = test::features_of_example(payload_of(record));
  REQUIRE(features.size() == 5);
  REQUIRE(features[0].name == "align");
  REQUIRE(features[1].name == "image");
  REQUIRE(features[2].name == "label");
  REQUIRE(features[3].name == "key");
  REQUIRE(features[4].name == "pad");
  for (const std::size_t i : {0U, 1U, 3U, 4U}) REQUIRE(features[i].list == 1);
  REQUIRE(features[2].list == 3);
  REQUIRE(test::all_zero(features[0].value));
  REQUIRE(features[0].value.size() < 64);
  REQUIRE(std::ranges::equal(features[1].value, tensor));
  test::ProtobufReader label(features[2].value);
  REQUIRE(static_cast<std::int64_t>(label.varint()) == sample.label);
  REQUIRE(label.at_end());
  REQUIRE(test::text_of(features[3].value) == sample.key);
  REQUIRE(test::all_zero(features[4].value));
  REQUIRE(features[4].entry_bytes >= 145);
  REQUIRE(features[4].entry_bytes <= 16386);

  const ShardColumns columns = framing.columns(1);
  const auto offset = [&](const std::byte* at) {
    return static_cast<std::uint64_t>(at - record.data());
  };
  REQUIRE(offset(features[1].value.data()) == columns.image.base);
  REQUIRE(offset(features[1].value.data()) == framing.tensor_offset());
  REQUIRE(offset(features[2].value.data()) == columns.label.base);
  REQUIRE(columns.image.type == name(spec.dtype));
  REQUIRE(columns.label.type == "varint");
  REQUIRE(columns.key.type == "bytes");
  // The key's column is at the length, and the key follows.
  test::ProtobufReader key(record.subspan(columns.key.base));
  REQUIRE(key.varint() == sample.key.size());
  const auto key_offset = offset(features[3].value.data());
  REQUIRE(key_offset > columns.key.base);
  REQUIRE(key_offset - columns.key.base <= 2);
  for (const Column& column : {columns.image, columns.label, columns.key}) {
    REQUIRE(column.stride == framing.record_bytes());
  }
}

void check_alignment(const Framing& framing) {
  REQUIRE(framing.tensor_offset() % 64 == 0);
  REQUIRE(framing.record_bytes() % 64 == 0);
}

TEST_CASE("tfrecord records hold a tf.train.Example", "[formats][tfrecord]") {
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    const TensorSpec spec = spec_of(4, 6, 3, dtype);
    const SampleName sample{"cat/one", 3};
    const auto framing = make_framing(Format::kTfrecord, spec, test::limits_of({sample}));
    check_alignment(*framing);
    const auto samples = test::make_samples(std::vector{sample}, spec.size_bytes());
    check_record(*framing, spec, sample, samples[0].tensor);
    CHECK(framing->records_base() == 0);
    CHECK(framing->shard_bytes(7) == 7 * framing->record_bytes());
    CHECK(test::assemble(*framing, samples).size() == framing->record_bytes());
  }
}

TEST_CASE("tfrecord has the bytes of the documented example", "[formats][tfrecord][golden]") {
  const TensorSpec spec = spec_of(2, 2, 1);
  const SampleName sample{"a/b", 5};
  const auto framing = make_framing(Format::kTfrecord, spec, test::limits_of({sample}));
  const Bytes tensor = test::bytes_of("\x01\x02\x03\x04");
  const auto record = test::frame(*framing, sample, tensor);
  const std::string_view expected =
      "f000000000000000974165aa0aed010a200a05616c69676e12170a150a130000"
      "00000000000000000000000000000000000a110a05696d61676512080a060a04"
      "010203040a0e0a056c6162656c12051a030a01050a0e0a036b657912070a050a"
      "03612f620a95010a03706164128d010a8a010a87010000000000000000000000";
  REQUIRE(record.bytes.size() == 256);
  std::string hex;
  for (const std::byte byte : record.bytes) {
    hex += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
    hex += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
  }
  CHECK(hex.substr(0, expected.size()) == expected);
  CHECK(hex.substr(504) == "70ee5b1f");
  CHECK(framing->columns(1) ==
        ShardColumns{{64, 256, "uint8"}, {83, 256, "varint"}, {96, 256, "bytes"}});
}

TEST_CASE("tfrecord writes lengths around keys of up to 116 bytes as one byte",
          "[formats][tfrecord]") {
  for (const std::size_t longest : {1U, 115U, 116U, 117U, 300U}) {
    const auto framing =
        make_framing(Format::kTfrecord, spec_of(2, 2, 3), test::limits_of({{letters(longest), 5}}));
    const auto record = test::frame(*framing, {"key", 5}, Bytes(12));
    CAPTURE(longest);
    const auto length = test::text_of(record.bytes).substr(framing->columns(1).key.base, 2);
    CHECK(length == (longest <= 116 ? "\x03k" : std::string("\x83\0", 2)));
  }
}

TEST_CASE("tfrecord records have one size for all keys", "[formats][tfrecord]") {
  const TensorSpec spec = spec_of(2, 3, 3);
  const Bytes tensor(spec.size_bytes(), std::byte{7});
  for (const std::size_t longest :
       {1U, 100U, 108U, 109U, 110U, 111U, 112U, 113U, 114U, 115U, 120U, 127U, 128U, 300U, 4096U}) {
    const auto framing =
        make_framing(Format::kTfrecord, spec, test::limits_of({{letters(longest), 5}}));
    check_alignment(*framing);
    CAPTURE(longest);
    for (std::size_t size = 1; size <= longest; size += longest > 1000 ? 131 : 1) {
      check_record(*framing, spec, {letters(size), 5}, tensor);
    }
    check_record(*framing, spec, {letters(longest), 0}, tensor);
  }
}

TEST_CASE("tfrecord records have one size for all labels", "[formats][tfrecord]") {
  const std::vector<std::int64_t> labels{-1, 0, 1, 127, 128, 16383, 16384, kLeast, kMost};
  const TensorSpec spec = spec_of(2, 3, 3);
  const Bytes tensor(spec.size_bytes(), std::byte{7});
  for (const std::int64_t a : labels) {
    for (const std::int64_t b : labels) {
      NameLimits limits = test::limits_of({{"key", a}, {"k", b}});
      const auto framing = make_framing(Format::kTfrecord, spec, limits);
      check_alignment(*framing);
      CAPTURE(a, b);
      for (const std::int64_t label : labels) {
        if (label < limits.smallest_label || label > limits.largest_label) continue;
        check_record(*framing, spec, {"key", label}, tensor);
      }
    }
  }
}

TEST_CASE("tfrecord payloads of small tensors are aligned to 64 bytes", "[formats][tfrecord]") {
  const auto limits = test::limits_of({{"key", 5}});
  for (std::uint32_t width = 1; width <= 3000; ++width) {
    const TensorSpec spec = spec_of(1, width, 1);
    const auto framing = make_framing(Format::kTfrecord, spec, limits);
    CAPTURE(width);
    check_alignment(*framing);
    if (width < 400 || width % 97 == 0) {
      check_record(*framing, spec, {"key", 5}, Bytes(spec.size_bytes(), std::byte{9}));
    }
  }
}

// Where a length varint grows, at 2^14, 2^21 and 2^28 bytes, everything before the payload moves.
TEST_CASE("tfrecord payloads are aligned to 64 bytes where length varints grow",
          "[formats][tfrecord]") {
  for (const std::size_t key : {1U, 20U, 115U, 300U}) {
    const auto limits = test::limits_of({{letters(key), 5}});
    for (const std::uint32_t power : {1U << 14, 1U << 21, 1U << 28}) {
      for (std::uint32_t width = power - 1000; width <= power + 100; ++width) {
        const auto framing = make_framing(Format::kTfrecord, spec_of(1, width, 1), limits);
        if (framing->tensor_offset() % 64 == 0 && framing->record_bytes() % 64 == 0) continue;
        CAPTURE(key, width, framing->tensor_offset(), framing->record_bytes());
        FAIL_CHECK("not aligned");
      }
    }
  }
}

TEST_CASE("tfrecord records are well-formed where length varints grow", "[formats][tfrecord]") {
  const SampleName sample{letters(20), 5};
  for (const std::uint32_t power : {1U << 14, 1U << 21}) {
    for (std::uint32_t width = power - 400; width <= power + 20;
         width += power > 100'000 ? 29 : 1) {
      const TensorSpec spec = spec_of(1, width, 1);
      const auto framing = make_framing(Format::kTfrecord, spec, test::limits_of({sample}));
      CAPTURE(width);
      check_record(*framing, spec, sample, Bytes(spec.size_bytes(), std::byte{9}));
    }
  }
}

TEST_CASE("tfrecord refuses keys too long for a pad to compensate",
          "[formats][tfrecord][malformed]") {
  const TensorSpec spec = spec_of(2, 3, 3);
  const SampleName longest{letters(16'000), 5};
  const auto framing = make_framing(Format::kTfrecord, spec, test::limits_of({longest}));
  const Bytes tensor(spec.size_bytes());
  check_record(*framing, spec, longest, tensor);
  check_record(*framing, spec, {"k", 0}, tensor);
  CHECK_THAT(test::message_of<InvalidArgument>([&] {
               (void)make_framing(Format::kTfrecord, spec, test::limits_of({{letters(16'384), 5}}));
             }),
             test::contains("too long"));
  std::size_t taken = 0;
  for (std::size_t size = 16'000; size < 16'500; ++size) {
    const SampleName sample{letters(size), 5};
    try {
      const auto limit = make_framing(Format::kTfrecord, spec, test::limits_of({sample}));
      check_record(*limit, spec, sample, tensor);
      check_record(*limit, spec, {"k", 5}, tensor);
      ++taken;
    } catch (const InvalidArgument&) {
    }
  }
  CHECK(taken < 384);
}

}  // namespace
}  // namespace precache
