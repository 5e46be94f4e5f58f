// SPDX-License-Identifier: Apache-2.0
#include "convert/source/shard_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "convert/source/retry.hpp"
#include "convert/source/tfrecord_images.hpp"
#include "convert/source/unpacker.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

// Few enough for the usual limit of 1,024 files, with room for what else is open.
constexpr std::size_t kMostOpen = 256;
// A buffer that one huge sample has made this large is given back.
constexpr std::size_t kKeptBuffer = std::size_t{32} << 20;

}  // namespace

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

std::optional<Rejection> ShardReader::read(const ListedFile& listed,
                                           std::span<const std::byte>& bytes) {
  const SourceShard& shard = shards_.shard(listed.shard);
  if (listed.size > kLargestSample) {
    return Rejection{"limit", fmt::format("a sample of {} MiB is more than {} MiB",
                                          listed.size >> 20, kLargestSample >> 20)};
  }
  if (buffer_.size() > kKeptBuffer) buffer_ = {};
  buffer_.resize(listed.size);
  try {
    with_retries([&] { shards_.open(listed.shard)->read_at(listed.offset, buffer_); });
  } catch (const IoError& error) {
    if (error.code() == ENOENT || error.code() == ENOTDIR) throw_source_changed(shard.data.path);
    throw;
  } catch (const CorruptData&) {  // it shrank just now
    throw_source_changed(shard.data.path);
  }
  bytes = buffer_;
  if (shard.form.kind != SampleForm::Kind::kRecord) return std::nullopt;
  const auto image =
      image_of_record(buffer_, shard.form.image_key, shard.given.path, listed.offset);
  if (!image) {
    return Rejection{"decode",
                     fmt::format("the record has no bytes in '{}'", shard.form.image_key)};
  }
  bytes = *image;
  return std::nullopt;
}

}  // namespace precache
