// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/scan.hpp"

#include <sys/mman.h>

#include <cstring>

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/example_writer.hpp"
#include "tests/support/indexes.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/tar_writer.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::bytes_of;
using test::spec_of;

std::filesystem::path path_of(Format format) { return "shard" + std::string(extension(format)); }

std::vector<SampleName> names_with(std::size_t longest_key, std::size_t count) {
  std::vector<SampleName> names;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = i == 0 ? longest_key : 1 + i * 7 % longest_key;
    names.push_back({std::string(size, static_cast<char>('a' + i % 26)),
                     i == 1 ? -1 : static_cast<std::int64_t>(i * i * 37)});
  }
  return names;
}

/// Whether a shard states the type and shape of its tensors without a manifest.
bool tells_spec(Format format, DType dtype) {
  if (format == Format::kTfrecord) return false;
  return format == Format::kHdf5 || dtype != DType::kBfloat16;
}

void check_own_shard(Format format, const TensorSpec& spec, const std::vector<SampleName>& names) {
  const auto framing = test::make_framing(format, spec, test::limits_of(names), {"x", "y z"});
  const Bytes shard =
      test::assemble(*framing, test::make_samples(names, spec.size_bytes(), names.size()));
  const ShardColumns columns = framing->columns(names.size());
  const ShardIndex index = test::scan_bytes(shard, path_of(format));
  CHECK(index.format == format);
  CHECK(index.bytes == shard.size());
  REQUIRE(index.samples == names.size());
  CHECK(test::is_inside(index, shard.size()));
  if (format == Format::kHdf5) CHECK(index.classes == std::vector<std::string>{"x", "y z"});
  if (tells_spec(format, spec.dtype)) {
    CHECK(index.spec == spec);
    CHECK(index.unsupported_reason.empty());
    CHECK(index.columns == columns);
    CHECK(index.places.empty());
    CHECK(index.keys.empty());
    return;
  }
  CHECK_FALSE(index.spec);
  CHECK_FALSE(index.unsupported_reason.empty());
  REQUIRE(index.places.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(i);
    const SampleLocation& place = index.places[i];
    CHECK(place.record == framing->records_base() + i * framing->record_bytes());
    CHECK(place.payload == columns.image.base + i * columns.image.stride);
    CHECK(place.payload_bytes == spec.size_bytes());
    CHECK(place.label == names[i].label);
    CHECK(test::key_of(index, i) == names[i].key);
  }
}

TEST_CASE("a scan of precache shards gives the same as the manifest",
          "[formats][scan][roundtrip]") {
  for (const Format format : test::kFormats) {
    for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
        for (const std::size_t key : {1U, 96U, 97U, 116U, 117U, 600U}) {
          for (const std::size_t count : {1U, 2U, 5U}) {
            CAPTURE(name(format), name(dtype), name(layout), key, count);
            check_own_shard(format, spec_of(6, 5, 3, dtype, layout), names_with(key, count));
          }
        }
      }
    }
    check_own_shard(format, spec_of(33, 64, 1), names_with(20, 300));
  }
}

TEST_CASE("a scan of a shard without samples finds none", "[formats][scan]") {
  for (const Format format : test::kFormats) {
    CAPTURE(name(format));
    const auto framing =
        test::make_framing(format, spec_of(6, 5, 3), test::limits_of({{"k", 0}}), {"x", "y"});
    const Bytes shard = test::assemble(*framing, {});
    const ShardIndex index = test::scan_bytes(shard, path_of(format));
    CHECK(index.format == format);
    CHECK(index.samples == 0);
    CHECK(index.places.empty());
    CHECK(index.spec.has_value() == (format == Format::kHdf5));
  }
}

TEST_CASE("a shard truncated anywhere is refused or read up to a whole sample",
          "[formats][scan][malformed]") {
  for (const Format format : test::kFormats) {
    const auto names = names_with(9, 3);
    const auto framing = test::make_framing(format, spec_of(5, 5, 3), test::limits_of(names), {});
    const Bytes whole = test::assemble(*framing, test::make_samples(names, 75));
    // The library has to open each file, so test fewer of them.
    const std::size_t step = format == Format::kHdf5 ? 41 : 1;
    for (std::size_t size = 1; size < whole.size(); size += step) {
      CAPTURE(name(format), size);
      const Bytes shorter = test::cut(whole, size);
      // An archive may end after an entry. Nothing is read after the first block of zeros.
      const bool may_end = format == Format::kTar
                               ? size % 512 == 0 || size > whole.size() - 512
                               : format == Format::kTfrecord && size % framing->record_bytes() == 0;
      try {
        const ShardIndex index = test::scan_bytes(shorter, path_of(format));
        CHECK(may_end);
        CHECK(index.samples <= names.size());
        CHECK(test::is_inside(index, size));
      } catch (const CorruptData& error) {
        CHECK(error.offset() <= size);
      }
    }
  }
}

/// A scan of random damage ends with an error or with places inside the file.
bool survives_damage(const Bytes& whole, Format format, std::size_t damaged_bytes, int rounds) {
  test::Random random(7);
  for (int round = 0; round < rounds; ++round) {
    Bytes damaged = whole;
    for (auto flips = 1 + test::below(random, 4); flips > 0; --flips) {
      damaged[test::below(random, damaged_bytes)] = static_cast<std::byte>(random());
    }
    try {
      if (!test::is_inside(test::scan_bytes(damaged, path_of(format)), damaged.size()))
        return false;
    } catch (const Error&) {
    }
  }
  return true;
}

TEST_CASE("a scan of a damaged shard never reads outside of it", "[formats][scan][malformed]") {
  const auto names = names_with(9, 4);
  const auto long_names = names_with(130, 4);
  for (const Format format : {Format::kTar, Format::kTfrecord}) {
    for (const auto* some : {&names, &long_names}) {
      const auto framing = test::make_framing(format, spec_of(5, 5, 3), test::limits_of(*some), {});
      const Bytes whole = test::assemble(*framing, test::make_samples(*some, 75));
      CHECK(survives_damage(whole, format, whole.size(), 4000));
    }
  }
}

/// Checksums would detect most damage, so they are corrected here.
TEST_CASE("a scan of headers with right checksums never reads outside of the file",
          "[formats][scan][malformed]") {
  test::Random random(11);
  const auto names = names_with(130, 3);
  const auto framing =
      test::make_framing(Format::kTar, spec_of(5, 5, 3), test::limits_of(names), {});
  const std::string whole = test::text_of(test::assemble(*framing, test::make_samples(names, 75)));
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = whole;
    const std::size_t block = test::below(random, damaged.size() / 512) * 512;
    std::string header = damaged.substr(block, 512);
    header[124 + test::below(random, 33)] = static_cast<char>(random());  // size, mtime and type
    test::set_tar_checksum(header);
    damaged.replace(block, 512, header);
    try {
      const ShardIndex index = test::scan_text(damaged, "a.tar");
      REQUIRE(test::is_inside(index, damaged.size()));
    } catch (const Error&) {
    }
  }
  const std::string image = test::bytes_feature("image", std::string(12, 'i'));
  const std::string example =
      test::example(image + test::int_feature("shape", {2, 2, 3}) +
                    test::int_feature("label", {300}, false) + test::bytes_feature("key", "k"));
  for (int round = 0; round < 50'000; ++round) {
    std::string damaged = example;
    for (auto flips = 1 + test::below(random, 3); flips > 0; --flips) {
      damaged[test::below(random, damaged.size())] = static_cast<char>(random());
    }
    const std::string file = test::tfrecord(damaged) + test::tfrecord(example);
    REQUIRE(test::is_inside(test::scan_text(file, "a.tfrecord"), file.size()));
  }
}

#ifdef PRECACHE_WITH_HDF5
TEST_CASE("a scan of damaged HDF5 metadata never reads outside of the file",
          "[formats][scan][hdf5][malformed]") {
  const auto names = names_with(9, 4);
  const auto framing =
      test::make_framing(Format::kHdf5, spec_of(5, 5, 3), test::limits_of(names), {"x", "y"});
  const Bytes whole = test::assemble(*framing, test::make_samples(names, 75));
  // In a child process, since the HDF5 library parses the metadata.
  CHECK(test::ends_normally([&] {
    if (!survives_damage(whole, Format::kHdf5, 3000, 400)) ::_exit(1);
  }));
}
#endif

/// A copy of a file whose pages can be made inaccessible.
class GuardedCopy {
 public:
  explicit GuardedCopy(const Bytes& file) : size_(file.size()) {
    memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
    std::memcpy(memory_, file.data(), size_);
    ::mprotect(memory_, size_, PROT_READ);
  }
  GuardedCopy(const GuardedCopy&) = delete;
  GuardedCopy& operator=(const GuardedCopy&) = delete;
  ~GuardedCopy() { ::munmap(memory_, size_); }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(memory_), size_};
  }
  /// All pages that are entirely in the range.
  void forbid(std::uint64_t begin, std::uint64_t end) {
    constexpr std::uint64_t kPage = 4096;
    begin = (begin + kPage - 1) / kPage * kPage;
    end = end / kPage * kPage;
    if (begin < end) ::mprotect(static_cast<std::byte*>(memory_) + begin, end - begin, PROT_NONE);
  }

 private:
  void* memory_;
  std::size_t size_;
};

TEST_CASE("a scan writes nothing and does not touch the pages of payloads", "[formats][scan]") {
  for (const Format format : test::kFormats) {
    CAPTURE(name(format));
    const auto names = names_with(9, 5);
    const auto spec = spec_of(64, 64, 3);
    const auto framing = test::make_framing(format, spec, test::limits_of(names), {"x"});
    const Bytes shard = test::assemble(*framing, test::make_samples(names, spec.size_bytes()));
    const Column image = framing->columns(names.size()).image;
    GuardedCopy copy(shard);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::uint64_t payload = image.base + i * image.stride;
      // The kind of a file is found from its first bytes, right after the framing.
      copy.forbid(payload + 64, payload + spec.size_bytes());
    }
    CHECK(test::ends_normally([&] {
      if (test::scan_bytes(copy.bytes(), path_of(format)).samples != names.size()) ::_exit(1);
    }));
  }
}

TEST_CASE("formats are detected from content", "[formats][scan]") {
  const auto detect = [](const std::string& text, const char* path) {
    return detect_format(bytes_of(text), path);
  };
  const std::string signature = "\x89HDF\r\n\x1a\n";
  const std::string zeros(4096, '\0');
  CHECK(detect(signature, "x") == Format::kHdf5);
  CHECK(detect("user block" + std::string(502, ' ') + signature, "x") == Format::kHdf5);
  CHECK(detect("user block" + std::string(2038, ' ') + signature, "x") == Format::kHdf5);
  CHECK(detect(test::tar_entry("a", ""), "x.h5") == Format::kTar);
  CHECK(detect(test::tar_entry("a.h5", signature), "x") == Format::kTar);
  CHECK(detect(test::tar_entry("a", "", {.type = '\0', .magic = ""}), "x") == Format::kTar);
  CHECK(detect(test::tar_entry("BZh", ""), "x") == Format::kTar);
  CHECK(detect(zeros, "x") == Format::kTar);
  CHECK(detect(test::tfrecord("text"), "x.tar") == Format::kTfrecord);
  CHECK(detect("", "train.tfrecord-00000-of-00001") == Format::kTfrecord);
  std::string broken = test::tar_entry("a", "");
  broken[0] = 'b';
  CHECK(detect(broken, "x") == Format::kTar);
}

TEST_CASE("the kind of a file that is not a shard is named", "[formats][scan][malformed]") {
  struct Case {
    std::string text;
    std::string words;
  };
  for (const auto& [text, words] :
       {Case{"\x1f\x8b\x08 and so on", "gzip"}, Case{"\x28\xb5\x2f\xfd and so on", "zstd"},
        Case{std::string("\xfd"
                         "7zXZ\0",
                         6),
             "xz"},
        Case{"BZh9", "bzip2"}, Case{"\x04\x22\x4d\x18", "lz4"}, Case{"\x1f\x9d\x90", "compress"},
        Case{"\x78\x9c and so on", "zlib"}, Case{"PK\x03\x04", "ZIP archive"},
        Case{"version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer"},
        Case{"\xff\xd8\xff\xe0", "JPEG image"}, Case{"\x93NUMPY", "NumPy array"},
        Case{"\n\n<!DOCTYPE html>", "HTML page"},
        Case{"some text", "not a tar, TFRecord or HDF5 file"}, Case{"x", "not a tar"}}) {
    CAPTURE(words);
    const auto call = [&, &text = text] { (void)detect_format(bytes_of(text), "data"); };
    CHECK_THAT(test::message_of<Unsupported>(call), test::contains(words));
  }
}

TEST_CASE("a file with the name of a shard and other content is corrupt",
          "[formats][scan][malformed]") {
  for (const char* path : {"a.tar", "a.h5", "a.hdf5", "a.tfrecord", "a.tfrecords", "a.record"}) {
    CAPTURE(path);
    CHECK_THROWS_AS(detect_format(bytes_of("some text"), path), CorruptData);
  }
  CHECK_THROWS_AS(detect_format({}, "a.tar"), CorruptData);
  CHECK_THROWS_AS(detect_format({}, "a"), CorruptData);
  // More zeros than any archiver uses as padding: nothing was ever written there.
  CHECK_THROWS_AS(detect_format(Bytes(2 << 20), "a.tar"), CorruptData);
}

TEST_CASE("unpacked files are checked by their first bytes", "[formats][scan][malformed]") {
  const Bytes piece(1 << 16);
  UnpackedHead zeros("a.gz");
  std::size_t seen = 0;
  const auto see_all = [&](UnpackedHead& head, const Bytes& bytes) {
    for (seen = 0; seen < 100; ++seen) head.see(bytes);
  };
  CHECK_THROWS_AS(see_all(zeros, piece), Unsupported);
  CHECK(seen == 16);  // pieces are a MiB, and may be an empty tar
  UnpackedHead text("a.gz");
  CHECK_THROWS_AS(see_all(text, Bytes(1 << 20, std::byte{'x'})), Unsupported);
  CHECK(seen == 1);
  UnpackedHead archive("a.gz");
  for (const std::byte byte : bytes_of(test::tar_entry("a.jpg", "x"))) archive.see({&byte, 1});
  CHECK_NOTHROW(see_all(archive, piece));
}

}  // namespace
}  // namespace precache
