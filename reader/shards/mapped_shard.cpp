// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/mapped_shard.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

// One fault maps all cached pages of the aligned 64 KiB around it (fault_around_bytes). Touching
// each window is cheaper than MADV_POPULATE_READ, which visits every page (docs/reader.md).
constexpr std::size_t kFaultAround = 64 << 10;

std::atomic<std::size_t> mapped_count{0};

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

File open_regular(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe does not wait for a writer, so it can be refused.
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

Mapping::Mapping(const File& file, std::uint64_t offset, std::size_t size, int protection) {
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
  base_ = {static_cast<std::byte*>(base), Unmap{size}};
}

MappedShard::MappedShard(const std::filesystem::path& path)
    : file_(open_regular(path)),
      state_(file_.state()),
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
  const std::byte* const end = bytes().data() + offset + size;
  std::size_t window = window_of(offset);
  for (const std::byte* at = bytes().data() + offset; at < end; ++window) {
    if (!touched_[window].load(std::memory_order_relaxed)) {
      (void)*static_cast<const volatile std::byte*>(at);
      touched_[window].store(true, std::memory_order_relaxed);
    }
    at += kFaultAround - reinterpret_cast<std::uintptr_t>(at) % kFaultAround;
  }
}

bool MappedShard::is_touched(std::uint64_t offset) const {
  return touched_[window_of(offset)].load(std::memory_order_relaxed);
}

void MappedShard::check() const {
  const FileState now = file_.state();
  if (now.bytes < state_.bytes) {
    throw CorruptData(path(), now.bytes, "the file was truncated while it was being read");
  }
  if (now != state_) {
    throw CorruptData(path(), 0, "the file was written to while it was being read");
  }
  if (lost_.load()) {
    throw CorruptData(path(), 0,
                      "a part of the file could not be read (truncated, or a failing disk)");
  }
}

PrivateRange::PrivateRange(std::shared_ptr<const MappedShard> shard, std::uint64_t offset,
                           std::size_t size, int protection)
    : shard_(std::move(shard)),
      mapping_(shard_->file(), offset / page_bytes() * page_bytes(), size + offset % page_bytes(),
               protection),
      bytes_(mapping_.bytes().subspan(offset % page_bytes())),
      watch_(mapping_.bytes().data(), mapping_.bytes().size(), shard_->lost()) {}

}  // namespace precache
