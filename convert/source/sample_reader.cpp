// SPDX-License-Identifier: Apache-2.0
#include "convert/source/sample_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "convert/image/decode/image_kind.hpp"
#include "convert/source/retry.hpp"
#include "convert/source/tfrecord_images.hpp"
#include "convert/source/unpacker.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kLargestSample = std::uint64_t{256} << 20;
constexpr std::uint64_t kLargeFile = std::uint64_t{1} << 20;
constexpr std::size_t kKindBytes = 4096;
// A buffer that one huge sample has made this large is freed.
constexpr std::size_t kKeptBuffer = std::size_t{32} << 20;
// Few enough for the usual limit of 1,024 files, with room for what else is open.
constexpr std::size_t kMostOpen = 256;

[[noreturn]] void throw_source_changed(const std::filesystem::path& path) {
  throw IoError("the source has changed since it was listed:", path, 0,
                "A dataset is made of one state of its source. Restore the file, or start over "
                "with `overwrite`.");
}

}  // namespace

std::optional<Rejection> SampleReader::read(const ListedFile& listed,
                                            std::span<const std::byte>& bytes) {
  if (listed.size > kLargestSample) {
    return Rejection{"limit", fmt::format("a sample of {} MiB is more than {} MiB",
                                          listed.size >> 20, kLargestSample >> 20)};
  }
  if (buffer_.size() > kKeptBuffer) buffer_ = {};
  try {
    with_retries([&] { read_once(listed, buffer_); });
  } catch (const IoError& error) {
    if (error.code() == ENOENT || error.code() == ENOTDIR) throw_source_changed(file_of(listed));
    throw;
  }
  bytes = buffer_;
  return find_image(listed, bytes);
}

void FileReader::read_once(const ListedFile& listed, std::vector<std::byte>& buffer) {
  const auto path = file_of(listed);
  // O_NONBLOCK: should a fifo stand there now, opening it does not wait for a writer.
  const File file(path, O_RDONLY | O_NONBLOCK);
  const auto check_unchanged = [&] {
    struct stat status {};
    if (::fstat(file.descriptor(), &status) != 0) throw IoError("cannot read", path, errno);
    if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != listed.size ||
        mtime_ns(status) != listed.mtime_ns) {
      throw_source_changed(path);
    }
  };
  check_unchanged();
  std::size_t have = 0;
  const auto read_up_to = [&](std::size_t size) {
    buffer.resize(size);
    while (have < size) {
      const ssize_t count = ::read(file.descriptor(), buffer.data() + have, size - have);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw IoError("cannot read", path, errno);
      if (count == 0) throw_source_changed(path);  // it shrank just now
      have += static_cast<std::size_t>(count);
    }
  };
  // Only the head is read of a large file that is not an image.
  if (listed.size > kLargeFile) {
    read_up_to(kKindBytes);
    if (image_kind(buffer) == ImageKind::kOther) return;
  }
  read_up_to(listed.size);
  check_unchanged();  // it may have been written to while it was read
}

std::shared_ptr<const File> ShardFileCache::open(std::uint32_t shard) {
  const FileStamp& listed = shards_[shard].data;
  std::shared_ptr<const File> file;
  {
    const std::scoped_lock lock(mutex_);
    file = files_[shard];
  }
  if (!file) {
    // O_NONBLOCK: should a fifo stand there now, opening it does not wait for a writer.
    file = std::make_shared<const File>(listed.path, O_RDONLY | O_NONBLOCK);
    const std::scoped_lock lock(mutex_);
    if (!files_[shard]) opened_.push_back(shard);
    files_[shard] = file;
    if (opened_.size() > kMostOpen) {
      files_[opened_.front()].reset();
      opened_.pop_front();
    }
  }
  const FileStamp now = stamp_of(*file);
  if (now.bytes != listed.bytes || now.mtime_ns != listed.mtime_ns) {
    throw_source_changed(listed.path);
  }
  return file;
}

void ShardReader::read_once(const ListedFile& listed, std::vector<std::byte>& buffer) {
  buffer.resize(listed.size);
  try {
    shards_.open(listed.shard)->read_at(listed.offset, buffer);
  } catch (const CorruptData&) {  // it shrank just now
    throw_source_changed(file_of(listed));
  }
}

std::optional<Rejection> ShardReader::find_image(const ListedFile& listed,
                                                 std::span<const std::byte>& bytes) {
  const SourceShard& shard = shards_.shard(listed.shard);
  if (shard.form.kind != SampleForm::Kind::kRecord) return std::nullopt;
  const auto image = image_of_record(bytes, shard.form.image_key, shard.given.path, listed.offset);
  if (!image) {
    return Rejection{"decode",
                     fmt::format("the record has no bytes in '{}'", shard.form.image_key)};
  }
  bytes = *image;
  return std::nullopt;
}

}  // namespace precache
