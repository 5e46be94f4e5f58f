// SPDX-License-Identifier: Apache-2.0
#include "reader/written_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>

#include "formats/base/file.hpp"

namespace precache {
namespace {

// Entries of /proc/self/pagemap. A copy of our own is anonymous memory, or was and is swapped out.
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61;
constexpr std::size_t kEntriesAtOnce = 512;

bool is_copy(std::uint64_t entry) {
  return (entry & kSwapped) != 0 || ((entry & kPresent) != 0 && (entry & kOfFile) == 0);
}

/// The descriptor of this process's pagemap, -1 if there is none. A child of fork() needs its own:
/// that of the parent goes on telling of the parent.
int pagemap() {
  static std::mutex mutex;
  static File file;
  static pid_t owner = -1;
  const std::lock_guard lock(mutex);
  if (owner != ::getpid()) {
    owner = ::getpid();
    file = File(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), "/proc/self/pagemap");
  }
  return file.descriptor();
}

/// Reads entries for pages from `first` on; how many, 0 if the system does not tell.
std::size_t read_entries(const std::byte* first, std::span<std::uint64_t> entries) {
  const auto page = reinterpret_cast<std::uintptr_t>(first) / page_bytes();
  const ssize_t bytes = ::pread(pagemap(), entries.data(), entries.size_bytes(),
                                static_cast<off_t>(page * sizeof(std::uint64_t)));
  return bytes <= 0 ? 0 : static_cast<std::size_t>(bytes) / sizeof(std::uint64_t);
}

}  // namespace

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

bool any_page_written(const std::byte* first, std::uint64_t pages) {
  std::array<std::uint64_t, kEntriesAtOnce> buffer;
  while (pages != 0) {
    const auto entries = std::span(buffer).first(std::min<std::uint64_t>(pages, kEntriesAtOnce));
    const std::size_t read = read_entries(first, entries);
    if (read == 0 || std::any_of(entries.begin(), entries.begin() + read, is_copy)) return true;
    first += read * page_bytes();
    pages -= read;
  }
  return false;
}

void drop_written_pages(std::byte* first, std::uint64_t pages) {
  std::array<std::uint64_t, kEntriesAtOnce> buffer;
  while (pages != 0) {
    const auto entries = std::span(buffer).first(std::min<std::uint64_t>(pages, kEntriesAtOnce));
    const std::size_t read = read_entries(first, entries);
    if (read == 0) {
      (void)::madvise(first, pages * page_bytes(), MADV_DONTNEED);
      return;
    }
    // Runs of copies, so that one call drops a batch that was written to from end to end.
    for (std::size_t i = 0; i < read;) {
      const std::size_t begin = i;
      while (i < read && is_copy(entries[i])) ++i;
      if (i != begin) {
        (void)::madvise(first + begin * page_bytes(), (i - begin) * page_bytes(), MADV_DONTNEED);
      }
      while (i < read && !is_copy(entries[i])) ++i;
    }
    first += read * page_bytes();
    pages -= read;
  }
}

}  // namespace precache
