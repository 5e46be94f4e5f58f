// SPDX-License-Identifier: Apache-2.0
#include "convert/source/file_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "formats/base/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{512} << 20;
// A buffer that one huge file has made this large is given back.
constexpr std::size_t kKeptBuffer = std::size_t{32} << 20;

using std::chrono::milliseconds;
constexpr std::array kPauses{milliseconds(20), milliseconds(200), milliseconds(1000)};

bool may_pass(int code) {
  switch (code) {
    case EIO:
    case ESTALE:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case EBUSY:
    case ETIMEDOUT:
    case ENOBUFS:
    case EREMOTEIO:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void throw_changed(const std::filesystem::path& path) {
  throw IoError("the source has changed since it was listed:", path, 0,
                "A dataset is made of one state of its source. Restore the file, or start over "
                "with --overwrite.");
}

}  // namespace

void FileReader::read_once(const std::filesystem::path& path, const ListedFile& listed) {
  // O_NONBLOCK: should a fifo stand there now, opening it does not wait for a writer.
  const File file(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw IoError("cannot read", path, errno);
  const std::int64_t mtime_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != listed.size ||
      mtime_ns != listed.mtime_ns) {
    throw_changed(path);
  }
  buffer_.resize(listed.size);
  std::span<std::byte> rest(buffer_);
  while (!rest.empty()) {
    const ssize_t count = ::read(file.descriptor(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw IoError("cannot read", path, errno);
    if (count == 0) throw_changed(path);  // it shrank just now
    rest = rest.subspan(static_cast<std::size_t>(count));
  }
}

std::optional<Rejection> FileReader::read(const ListedFile& listed,
                                          std::span<const std::byte>& bytes) {
  if (listed.size > kLargestFile) {
    return Rejection{"limit", fmt::format("a file of {} MiB is more than {} MiB", listed.size >> 20,
                                          kLargestFile >> 20)};
  }
  if (buffer_.size() > kKeptBuffer) buffer_ = {};
  const auto path = root_ / listed.path;
  for (std::size_t attempt = 0;; ++attempt) {
    try {
      read_once(path, listed);
      break;
    } catch (const IoError& error) {
      if (error.code() == ENOENT || error.code() == ENOTDIR) throw_changed(path);
      if (!may_pass(error.code()) || attempt == kPauses.size()) throw;
    }
    std::this_thread::sleep_for(kPauses[attempt]);
  }
  bytes = buffer_;
  return std::nullopt;
}

}  // namespace precache
