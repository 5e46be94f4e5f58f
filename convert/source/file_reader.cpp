// SPDX-License-Identifier: Apache-2.0
#include "convert/source/file_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "convert/image/decode/image_kind.hpp"
#include "convert/source/retry.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kLargeFile = std::uint64_t{1} << 20;
constexpr std::size_t kKindBytes = 4096;
// A buffer that one huge file has made this large is given back.
constexpr std::size_t kKeptBuffer = std::size_t{32} << 20;

}  // namespace

void throw_source_changed(const std::filesystem::path& path) {
  throw IoError("the source has changed since it was listed:", path, 0,
                "A dataset is made of one state of its source. Restore the file, or start over "
                "with `overwrite`.");
}

void FileReader::read_once(const std::filesystem::path& path, const ListedFile& listed) {
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
    buffer_.resize(size);
    while (have < size) {
      const ssize_t count = ::read(file.descriptor(), buffer_.data() + have, size - have);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw IoError("cannot read", path, errno);
      if (count == 0) throw_source_changed(path);  // it shrank just now
      have += static_cast<std::size_t>(count);
    }
  };
  // Nothing large is read of what is no image.
  if (listed.size > kLargeFile) {
    read_up_to(kKindBytes);
    if (image_kind(buffer_) == ImageKind::kOther) return;
  }
  read_up_to(listed.size);
  check_unchanged();  // it may have been written to while it was read
}

std::optional<Rejection> FileReader::read(const ListedFile& listed,
                                          std::span<const std::byte>& bytes) {
  if (listed.size > kLargestSample) {
    return Rejection{"limit", fmt::format("a file of {} MiB is more than {} MiB", listed.size >> 20,
                                          kLargestSample >> 20)};
  }
  if (buffer_.size() > kKeptBuffer) buffer_ = {};
  const auto path = root_ / listed.path;
  try {
    with_retries([&] { read_once(path, listed); });
  } catch (const IoError& error) {
    if (error.code() == ENOENT || error.code() == ENOTDIR) throw_source_changed(path);
    throw;
  }
  bytes = buffer_;
  return std::nullopt;
}

}  // namespace precache
