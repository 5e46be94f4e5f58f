// SPDX-License-Identifier: Apache-2.0
#include "reader/mapped_shard.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "precache/formats/error.hpp"
#include "reader/written_pages.hpp"

namespace precache {
namespace {

// One fault maps all cached pages of the aligned 64 KiB around it (fault_around_bytes). A touch for
// each is cheaper than MADV_POPULATE_READ, which visits every page (docs/reader.md).
constexpr std::size_t kFaultAround = 64 << 10;

FileState state_of(const File& file) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw IoError("cannot stat", file.path(), errno);
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

File open_regular(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe of that name is refused here and not waited for.
  File file(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw IoError("cannot stat", path, errno);
  if (S_ISDIR(status.st_mode)) throw IoError("cannot read", path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw Unsupported("'" + path.string() + "' is no regular file, so it cannot be mapped");
  }
  return file;
}

}  // namespace

Mapping::Mapping(const File& file, std::uint64_t offset, std::size_t size, int protection)
    : size_(size) {
  if (size == 0) return;
  void* base = ::mmap(nullptr, size, protection, MAP_PRIVATE | MAP_NORESERVE, file.descriptor(),
                      static_cast<off_t>(offset));
  if (base == MAP_FAILED) {
    throw IoError(
        "cannot map", file.path(), errno,
        errno == ENOMEM ? "Fewer shards may be mapped at a time: see max_open_shards." : "");
  }
  base_ = static_cast<std::byte*>(base);
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, size_);
}

WritableMapping::WritableMapping(const File& file, std::uint64_t size, std::atomic<bool>& lost)
    : mapping_(file, 0, size, PROT_READ | PROT_WRITE),
      watch_(mapping_.bytes().data(), mapping_.bytes().size(), lost) {}

bool WritableMapping::is_held(const Range& range) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Range& held) {
    return held.first < range.end && range.first < held.end;
  });
}

std::byte* WritableMapping::lend(std::uint64_t offset, std::size_t size) {
  const Range range{offset, offset + size};
  const std::lock_guard lock(mutex_);
  if (is_held(range)) return nullptr;
  // A page at the edge that a neighbour holds too may have kept the writes of an earlier holder.
  for (const std::uint64_t edge : {range.first, range.end - 1}) {
    std::byte* const page = mapping_.bytes().data() + edge / page_bytes() * page_bytes();
    if (any_page_written(page, 1)) return nullptr;
  }
  held_.push_back(range);
  return mapping_.bytes().data() + offset;
}

void WritableMapping::give_back(std::uint64_t offset, std::size_t size) {
  const Range range{offset, offset + size};
  const std::lock_guard lock(mutex_);
  held_.erase(std::find(held_.begin(), held_.end(), range));
  // Pages that a neighbour holds too are his to give back.
  std::uint64_t first = range.first / page_bytes();
  std::uint64_t end = (range.end + page_bytes() - 1) / page_bytes();
  const auto page_is_held = [&](std::uint64_t page) {
    return is_held({page * page_bytes(), (page + 1) * page_bytes()});
  };
  if (first < end && page_is_held(first)) ++first;
  if (first < end && page_is_held(end - 1)) --end;
  drop_written_pages(mapping_.bytes().data() + first * page_bytes(), end - first);
}

MappedShard::MappedShard(const std::filesystem::path& path)
    : file_(open_regular(path)),
      state_(state_of(file_)),
      mapping_(file_, 0, state_.bytes, PROT_READ),
      watch_(mapping_.bytes().data(), mapping_.bytes().size(), lost_) {}

WritableMapping& MappedShard::writable() const {
  const std::lock_guard lock(mutex_);
  if (!writable_) writable_.emplace(file_, state_.bytes, lost_);
  return *writable_;
}

void MappedShard::check() const {
  const FileState now = state_of(file_);
  if (now.bytes < state_.bytes) {
    throw CorruptData(path(), now.bytes, "the file was cut while it was being read");
  }
  if (now != state_) {
    throw CorruptData(path(), 0, "the file was written to while it was being read");
  }
  if (lost_.load()) {
    throw CorruptData(path(), 0, "a part of the file could not be read (cut, or a failing disk)");
  }
}

std::optional<WritableRange> WritableRange::lend(std::shared_ptr<const MappedShard> shard,
                                                 std::uint64_t offset, std::size_t size) {
  std::byte* const bytes = shard->writable().lend(offset, size);
  if (bytes == nullptr) return std::nullopt;
  return WritableRange(std::move(shard), offset, {bytes, size});
}

WritableRange::~WritableRange() {
  if (shard_ != nullptr) shard_->writable().give_back(offset_, bytes_.size());
}

void WritableRange::touch(std::size_t first, std::size_t size) const {
  const std::byte* const end = bytes_.data() + std::min(first + size, bytes_.size());
  for (const std::byte* at = bytes_.data() + first; at < end;) {
    (void)*static_cast<const volatile std::byte*>(at);
    at += kFaultAround - reinterpret_cast<std::uintptr_t>(at) % kFaultAround;
  }
}

}  // namespace precache
