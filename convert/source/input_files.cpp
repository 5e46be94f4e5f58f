// SPDX-License-Identifier: Apache-2.0
#include "convert/source/input_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "convert/source/retry.hpp"
#include "convert/source/tfrecord_images.hpp"
#include "convert/source/unpacker.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/limits.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kLargeFile = std::uint64_t{1} << 20;
constexpr std::size_t kKindBytes = 4096;
// A buffer that one huge sample has made this large is freed.
constexpr std::size_t kKeptBuffer = std::size_t{32} << 20;
// Few enough for the usual limit of 1,024 files, with room for what else is open.
constexpr std::size_t kMostOpen = 256;

[[noreturn]] void throw_source_changed(const std::filesystem::path& path) {
  throw IoError(
      "the source has changed since it was listed:", path, 0,
      "All images must come from one state of the source. Restore the file, or start over "
      "with `overwrite`.");
}

void check_unchanged(const File& file, const FileStamp& listed) {
  const FileStamp now = stamp_of(file);
  if (now.bytes != listed.bytes || now.mtime_ns != listed.mtime_ns) {
    throw_source_changed(listed.path);
  }
}

}  // namespace

std::string InputFiles::origin(const ListedFile& listed) const {
  if (source_.shards.empty()) return std::string(listed.path);
  const std::filesystem::path& shard = source_.shards[listed.shard].given.path;
  return shard.filename().string() + ":" + std::string(listed.path);
}

std::filesystem::path InputFiles::full_origin(const ListedFile& listed) const {
  if (source_.shards.empty()) return root_ / origin(listed);
  return source_.shards[listed.shard].given.path.parent_path() / origin(listed);
}

std::unique_ptr<SampleReader> InputFiles::reader() const {
  return std::make_unique<SampleReader>(*this);
}

std::function<std::uint32_t(std::uint64_t)> InputFiles::crc_reader() const {
  return [this, reader = std::make_shared<SampleReader>(*this)](std::uint64_t sample) {
    std::span<const std::byte> bytes;
    return reader->read(source_.listing[sample], bytes) ? 0 : crc32c::value(bytes);
  };
}

FileStamp InputFiles::file_of(const ListedFile& listed) const {
  if (!source_.shards.empty()) return source_.shards[listed.shard].data;
  return {root_ / listed.path, listed.size, listed.mtime_ns};
}

std::shared_ptr<const File> InputFiles::open(const ListedFile& listed) const {
  std::shared_ptr<const File> file;
  if (!files_.empty()) {
    const std::scoped_lock lock(mutex_);
    file = files_[listed.shard];
  }
  const FileStamp stamp = file_of(listed);
  if (!file) {
    // O_NONBLOCK: if a fifo has taken its place, opening it does not wait for a writer.
    file = std::make_shared<const File>(stamp.path, O_RDONLY | O_NONBLOCK);
    if (!files_.empty()) {
      const std::scoped_lock lock(mutex_);
      if (!files_[listed.shard]) opened_.push_back(listed.shard);
      files_[listed.shard] = file;
      if (opened_.size() > kMostOpen) {
        files_[opened_.front()].reset();
        opened_.pop_front();
      }
    }
  }
  check_unchanged(*file, stamp);
  return file;
}

std::optional<Rejection> SampleReader::read(const ListedFile& listed,
                                            std::span<const std::byte>& bytes) {
  if (listed.size > kLargestEncodedImage) {
    return Rejection{RejectionStage::kLimit,
                     fmt::format("the sample has {} MiB, more than {} MiB", listed.size >> 20,
                                 kLargestEncodedImage >> 20)};
  }
  if (buffer_.size() > kKeptBuffer) buffer_ = {};
  try {
    with_retries([&] { read_once(listed); });
  } catch (const IoError& error) {
    if (error.code() != ENOENT && error.code() != ENOTDIR) throw;
    throw_source_changed(files_.file_of(listed).path);
  } catch (const CorruptData&) {  // the file shrank while it was read
    throw_source_changed(files_.file_of(listed).path);
  }
  bytes = buffer_;
  if (files_.source().shards.empty()) return std::nullopt;
  const SourceShard& shard = files_.source().shards[listed.shard];
  if (shard.form.kind != SampleForm::Kind::kRecord) return std::nullopt;
  const auto image = image_of_record(bytes, shard.form.image_key, shard.given.path, listed.offset);
  if (!image) {
    return Rejection{RejectionStage::kDecode,
                     fmt::format("the record has no bytes in '{}'", shard.form.image_key)};
  }
  bytes = *image;
  return std::nullopt;
}

void SampleReader::read_once(const ListedFile& listed) {
  const std::shared_ptr<const File> file = files_.open(listed);
  const bool is_in_shard = !files_.source().shards.empty();
  if (!is_in_shard && listed.size > kLargeFile) {
    buffer_.resize(kKindBytes);
    file->read_at(0, buffer_);
    if (!is_decoded(image_file_kind(buffer_))) return;
  }
  buffer_.resize(listed.size);
  file->read_at(listed.offset, buffer_);
  // A file may have been written to while it was read.
  if (!is_in_shard) check_unchanged(*file, files_.file_of(listed));
}

}  // namespace precache
