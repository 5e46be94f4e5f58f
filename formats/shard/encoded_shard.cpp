// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/encoded_shard.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <iterator>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/bytes/varint.hpp"
#include "formats/os/file.hpp"
#include "formats/tar/ustar.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::uint64_t kWritebackBytes = 8 << 20;  // as build does, so that the sync is short

/// Writes a file from start to end.
class FileStream {
 public:
  explicit FileStream(const std::filesystem::path& path)
      : file_(path, O_WRONLY | O_CREAT | O_TRUNC) {
    buffer_.reserve(kBufferBytes);
  }

  void write(std::span<const std::byte> bytes) {
    if (bytes.size() > kBufferBytes - buffer_.size()) flush();
    if (bytes.size() > kBufferBytes) {
      write_through(bytes);
    } else {
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    }
  }
  void write(std::string_view text) { write(as_bytes(text)); }

  [[nodiscard]] EncodedShard::Written finish() {
    flush();
    file_.sync();
    return {size_, crc_};
  }

 private:
  void flush() {
    write_through(buffer_);
    buffer_.clear();
  }
  void write_through(std::span<const std::byte> bytes) {
    file_.write_at(size_, bytes);
    size_ += bytes.size();
    crc_ = crc32c::extend(crc_, bytes);
    if (size_ - started_ < kWritebackBytes) return;
    file_.start_writeback(started_, size_ - started_);
    started_ = size_;
  }

  File file_;
  std::vector<std::byte> buffer_;
  std::uint64_t size_ = 0;
  std::uint32_t crc_ = 0;
  std::uint64_t started_ = 0;  // writeback has started up to here
};

class EncodedTar : public EncodedShard {
 public:
  explicit EncodedTar(const std::filesystem::path& path) : stream_(path) {}

  void append(const EncodedImage& image) override {
    write_entry(fmt::format("{}.{}", image.name.key, image.extension), image.bytes);
    write_entry(image.name.key + ".cls", as_bytes(fmt::format("{}", image.name.label)));
  }

  Written finish() override {
    stream_.write(std::string(2 * ustar::kBlock, '\0'));
    return stream_.finish();
  }

 private:
  void write_entry(const std::string& name, std::span<const std::byte> data) {
    const bool needs_pax = !ustar::fits(name.size(), name);
    const std::size_t pax = needs_pax ? 1 + ustar::pax_data_blocks(name.size()) : 0;
    std::vector<std::byte> headers((pax + 1) * ustar::kBlock);
    if (needs_pax) ustar::write_pax(std::span(headers).first(pax * ustar::kBlock), name);
    const std::string filling(round_up(data.size(), ustar::kBlock) - data.size(), '\0');
    ustar::write_header(std::span(headers).subspan(pax * ustar::kBlock), name, data.size(),
                        crc32c::extend(crc32c::value(data), as_bytes(filling)));
    stream_.write(headers);
    stream_.write(data);
    stream_.write(filling);
  }

  FileStream stream_;
};

/// Appends a protobuf field whose value has a length.
void append_field(std::string& out, int number, std::string_view value) {
  out += static_cast<char>(number << 3 | 2);
  put_varint(std::back_inserter(out), value.size(), varint_bytes(value.size()));
  out += value;
}

class EncodedTfrecord : public EncodedShard {
 public:
  explicit EncodedTfrecord(const std::filesystem::path& path) : stream_(path) {}

  void append(const EncodedImage& image) override {
    features_.clear();
    const auto label = static_cast<std::uint64_t>(image.name.label);
    std::string number;
    put_varint(std::back_inserter(number), label, varint_bytes(label));
    add_feature("image/class/label", kInt64List, number);
    if (!image.class_name.empty()) add_bytes("image/class/text", image.class_name);
    add_bytes("image/encoded", as_text(image.bytes));
    add_bytes("image/format", image.extension == "jpg" ? "jpeg" : image.extension);
    add_bytes("key", image.name.key);

    std::string example;
    append_field(example, 1, features_);
    std::string length;
    const auto out = std::back_inserter(length);
    put_little_endian(out, example.size(), 8);
    put_little_endian(out, crc32c::masked(crc32c::value(as_bytes(length))), 4);
    std::string footer;
    put_little_endian(std::back_inserter(footer), crc32c::masked(crc32c::value(as_bytes(example))),
                      4);
    stream_.write(length + example + footer);
  }

  Written finish() override { return stream_.finish(); }

 private:
  // Field numbers of tf.train.Feature.
  static constexpr int kBytesList = 1;
  static constexpr int kInt64List = 3;

  void add_bytes(std::string_view name, std::string_view value) {
    add_feature(name, kBytesList, value);
  }
  /// Adds an entry of the map from names to Features, with a list of one value.
  void add_feature(std::string_view name, int list_kind, std::string_view value) {
    std::string list;
    append_field(list, 1, value);
    std::string feature;
    append_field(feature, list_kind, list);
    std::string entry;
    append_field(entry, 1, name);
    append_field(entry, 2, feature);
    append_field(features_, 1, entry);
  }

  FileStream stream_;
  std::string features_;  // of the current Example
};

}  // namespace

std::unique_ptr<EncodedShard> make_encoded_shard(Format format, const std::filesystem::path& path) {
  if (format == Format::kTar) return std::make_unique<EncodedTar>(path);
  if (format == Format::kTfrecord) return std::make_unique<EncodedTfrecord>(path);
  throw Unsupported("HDF5 shards are written by the library precache_hdf5");
}

std::uint64_t encoded_overhead_bytes(Format format, const NameLimits& limits) {
  switch (format) {
    case Format::kTar:
      return (limits.all_fit_ustar ? 3 : 7) * ustar::kBlock + ustar::kBlock / 2;
    case Format::kTfrecord:
      return 160 + limits.longest_key;
    case Format::kHdf5:
      return 64 + limits.longest_key;
  }
  return 0;
}

}  // namespace precache
