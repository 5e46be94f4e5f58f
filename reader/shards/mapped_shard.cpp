// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/mapped_shard.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

// One fault maps all cached pages of the aligned 64 KiB around it (fault_around_bytes). A touch for
// each is cheaper than MADV_POPULATE_READ, which visits every page (docs/reader.md).
constexpr std::size_t kFaultAround = 64 << 10;

std::atomic<std::size_t> mapped_count{0};

std::size_t to_next_window(const std::byte* at) {
  return kFaultAround - reinterpret_cast<std::uintptr_t>(at) % kFaultAround;
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

File open_regular(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe of that name is refused here and not waited for.
  File file(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw IoError("cannot stat", path, errno);
  if (S_ISDIR(status.st_mode)) throw IoError("cannot read", path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw Unsupported("'" + path.string() + "' is not a regular file, so it cannot be mapped");
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
    throw IoError("cannot map", file.path(), errno,
                  errno == ENOMEM
                      ? "The system does not let this process map more: see 'ulimit -v' and "
                        "vm.max_map_count. "
                        "A smaller `max_open_shards` keeps fewer shards mapped at a time."
                      : "");
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

MappedShard::MappedShard(const std::filesystem::path& path)
    : file_(open_regular(path)),
      state_(state_of(file_)),
      mapping_(file_, 0, state_.bytes, PROT_READ),
      watch_(mapping_.bytes().data(), mapping_.bytes().size(), lost_),
      touched_(window_of(state_.bytes) + 1) {
  mapped_count.fetch_add(1, std::memory_order_relaxed);
}

MappedShard::~MappedShard() { mapped_count.fetch_sub(1, std::memory_order_relaxed); }

std::size_t MappedShard::open_count() { return mapped_count.load(std::memory_order_relaxed); }

std::size_t MappedShard::window_of(std::uint64_t offset) const {
  const auto base = reinterpret_cast<std::uintptr_t>(bytes().data());
  return (base + offset) / kFaultAround - base / kFaultAround;
}

void MappedShard::touch(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t end = offset + size;
  while (offset < end) {
    std::atomic<bool>& touched = touched_[window_of(offset)];
    const std::uint64_t stop = offset + to_next_window(bytes().data() + offset);
    if (!touched.load(std::memory_order_relaxed)) {
      touch_pages(bytes().subspan(offset, std::min(end, stop) - offset));
      touched.store(true, std::memory_order_relaxed);
    }
    offset = stop;
  }
}

bool MappedShard::is_touched(std::uint64_t offset) const {
  return touched_[window_of(offset)].load(std::memory_order_relaxed);
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

PrivateRange::PrivateRange(std::shared_ptr<const MappedShard> shard, std::uint64_t offset,
                           std::size_t size, int protection)
    : shard_(std::move(shard)),
      mapping_(shard_->file(), offset / page_bytes() * page_bytes(), size + offset % page_bytes(),
               protection),
      bytes_(mapping_.bytes().subspan(offset % page_bytes())),
      watch_(mapping_.bytes().data(), mapping_.bytes().size(), shard_->lost()) {}

void touch_pages(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    (void)*static_cast<const volatile std::byte*>(bytes.data() + i);
    i += to_next_window(bytes.data() + i);
  }
}

}  // namespace precache
