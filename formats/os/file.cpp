// SPDX-License-Identifier: Apache-2.0
#include "formats/os/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

// One call moves at most 2 GiB on Linux; the loops below take short counts anyway.
constexpr std::size_t kLargestTransfer = std::size_t{1} << 30;

/// Repeats a system call while signals interrupt it.
template <typename Call>
int uninterrupted(const Call& call) {
  int result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

FileState state_from(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

bool is_gone(int error) { return error == ENOENT || error == ENOTDIR; }

/// Whether a file system or its server offers no locks.
bool has_no_locks(int code) { return code == ENOLCK || code == EOPNOTSUPP || code == ENOSYS; }

}  // namespace

File::File(const std::filesystem::path& path, int flags) : path_(path) {
  fd_ = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  if (fd_ < 0) throw IoError((flags & O_CREAT) != 0 ? "cannot create" : "cannot open", path, errno);
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

FileState File::state() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw IoError("cannot stat", path_, errno);
  return state_from(status);
}

void File::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(fd_, bytes.data(), std::min(bytes.size(), kLargestTransfer),
                                  static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw IoError("cannot read", path_, errno);
    if (count == 0) throw CorruptData(path_, offset, "the file ends too early");
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void File::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), std::min(bytes.size(), kLargestTransfer),
                                   static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw IoError("cannot write", path_, errno);
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void File::preallocate(std::uint64_t bytes) {
  if (bytes != 0) {
    const auto size = static_cast<off_t>(bytes);
    if (uninterrupted([&] { return ::fallocate(fd_, 0, 0, size); }) == 0) return;
    if (errno != EOPNOTSUPP) throw IoError("cannot write", path_, errno);
  }
  truncate(bytes);
}

void File::truncate(std::uint64_t bytes) {
  if (uninterrupted([&] { return ::ftruncate(fd_, static_cast<off_t>(bytes)); }) != 0) {
    throw IoError("cannot resize", path_, errno);
  }
}

void File::start_writeback(std::uint64_t offset, std::uint64_t bytes) noexcept {
  // Only a hint: sync() reports what goes wrong.
  (void)::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                          SYNC_FILE_RANGE_WRITE);
}

void File::sync() {
  if (uninterrupted([&] { return ::fsync(fd_); }) != 0) throw IoError("cannot write", path_, errno);
}

bool File::try_lock(bool exclusive) {
  const int operation = (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
  if (uninterrupted([&] { return ::flock(fd_, operation); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  if (has_no_locks(errno)) return true;
  throw IoError("cannot lock", path_, errno);
}

void File::lock() {
  if (uninterrupted([&] { return ::flock(fd_, LOCK_EX); }) != 0 && !has_no_locks(errno)) {
    throw IoError("cannot lock", path_, errno);
  }
}

bool File::is_at_path() const {
  const FileState mine = state();
  struct stat there {};
  return ::stat(path_.c_str(), &there) == 0 && mine.device == there.st_dev &&
         mine.inode == there.st_ino;
}

std::optional<FileState> state_at(const std::filesystem::path& path, Ask ask) {
  if (ask == Ask::kByStat) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) return state_from(status);
    if (!is_gone(errno)) throw IoError("cannot stat", path, errno);
    return std::nullopt;
  }
  try {
    return File(path, O_RDONLY | O_NONBLOCK).state();
  } catch (const IoError& error) {
    if (is_gone(error.code())) return std::nullopt;
    if (error.code() == EMFILE || error.code() == ENFILE) return state_at(path, Ask::kByStat);
    throw;
  }
}

bool is_file_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." &&
         text.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  std::vector<std::byte> bytes(file.size());
  file.read_at(0, bytes);
  return bytes;
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw IoError("cannot rename to", to, errno);
  const auto folder = to.has_parent_path() ? to.parent_path() : std::filesystem::path(".");
  File(folder, O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace precache
