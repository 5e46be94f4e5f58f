// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/encoded_shard.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "formats/tar/ustar.hpp"
#include "formats/tfrecord/example_writer.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::uint64_t kWritebackBytes = 8 << 20;  // as build does, so that the sync is short

/// A file that is written from its begin to its end.
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
  std::uint64_t started_ = 0;  // being written to disk up to here
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

class EncodedTfrecord : public EncodedShard {
 public:
  explicit EncodedTfrecord(const std::filesystem::path& path) : stream_(path) {}

  void append(const EncodedImage& image) override {
    tfrecord::ExampleWriter example;
    example.add_integer("image/class/label", image.name.label);
    if (!image.class_name.empty()) example.add_bytes("image/class/text", image.class_name);
    example.add_bytes("image/encoded", as_text(image.bytes));
    example.add_bytes("image/format", image.extension == "jpg" ? "jpeg" : image.extension);
    example.add_bytes("key", image.name.key);
    stream_.write(std::move(example).record());
  }

  Written finish() override { return stream_.finish(); }

 private:
  FileStream stream_;
};

}  // namespace

std::unique_ptr<EncodedShard> make_encoded_shard(Format format, const std::filesystem::path& path) {
  switch (format) {
    case Format::kTar:
      return std::make_unique<EncodedTar>(path);
    case Format::kTfrecord:
      return std::make_unique<EncodedTfrecord>(path);
    case Format::kHdf5:
      break;
  }
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
