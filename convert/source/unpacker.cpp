// SPDX-License-Identifier: Apache-2.0
#include "convert/source/unpacker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "convert/source/retry.hpp"
#include "formats/bytes/inflate.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/os/temporary_file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr int kPollMilliseconds = 200;

struct stat status_of(const File& file) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw IoError("cannot read", file.path(), errno);
  return status;
}

/// Standard input is a stream even if it is a file, because it cannot be opened again.
bool is_stream(const File& file) { return file.path() == "-" || !S_ISREG(status_of(file).st_mode); }

/// Reads a file or a pipe from beginning to end.
class Input {
 public:
  Input(const File& file, const std::atomic<bool>& stop)
      : file_(file), stop_(stop), is_stream_(is_stream(file)), piece_(kPiece) {}

  void take(std::size_t bytes) { unread_ = unread_.subspan(bytes); }

  /// The next bytes; none at the end. They are valid until the next call after all were taken.
  std::span<const std::byte> next() {
    if (unread_.empty()) {
      unread_ = std::span(piece_).first(read(piece_));
      end_ += unread_.size();
    }
    return unread_;
  }

  /// Enough of the first bytes to tell the format.  REQUIRES: nothing was taken.
  std::span<const std::byte> head() {
    std::size_t have = unread_.size();
    while (have < kHeadBytes) {
      const std::size_t count = read(std::span(piece_).subspan(have));
      if (count == 0) break;
      have += count;
      end_ += count;
    }
    unread_ = std::span(piece_).first(have);
    return unread_;
  }

 private:
  static constexpr std::size_t kHeadBytes = 512;

  std::size_t read(std::span<std::byte> into) {
    wait();
    return with_retries([&] {
      const auto offset = static_cast<off_t>(end_);
      ssize_t count = 0;
      do {
        count = is_stream_ ? ::read(file_.descriptor(), into.data(), into.size())
                           : ::pread(file_.descriptor(), into.data(), into.size(), offset);
      } while (count < 0 && errno == EINTR);
      if (count < 0) throw IoError("cannot read", file_.path(), errno);
      return static_cast<std::size_t>(count);
    });
  }

  /// Waits for something to read, but not when `stop` is set.
  void wait() const {
    pollfd waiting{file_.descriptor(), POLLIN, 0};
    int ready = 0;
    do {
      if (stop_) throw UnpackingStopped();
      if (!is_stream_) return;
      ready = ::poll(&waiting, 1, kPollMilliseconds);
    } while (ready == 0 || (ready < 0 && errno == EINTR));  // by the signal that set `stop`
  }

  const File& file_;
  const std::atomic<bool>& stop_;
  bool is_stream_;
  std::vector<std::byte> piece_;
  std::span<const std::byte> unread_;
  std::uint64_t end_ = 0;
};

bool is_compressed(std::span<const std::byte> head, const std::filesystem::path& path) {
  if (begins_as_shard(head)) return false;
  const FileKind kind = file_kind(head);
  if (kind.group == FileKind::Group::kDeflated) return true;
  if (kind.group != FileKind::Group::kCompressed) return false;
  throw Unsupported(fmt::format("'{}' is compressed by {}", path.string(), kind.name),
                    "precache unpacks only gzip and zlib. Unpack the file with another program and "
                    "pipe the result "
                    "to standard input (set `source` to -).");
}

}  // namespace

FileStamp stamp_of(const File& file) {
  const struct stat status = status_of(file);
  return {file.path(), static_cast<std::uint64_t>(status.st_size), mtime_ns(status)};
}

Unpacker::~Unpacker() {
  std::error_code ignored;  // a folder that stays does no harm
  if (!folder_.empty() && !is_kept_) std::filesystem::remove_all(folder_, ignored);
}

std::filesystem::path Unpacker::path_of(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  if (folder_.empty()) {
    const auto folder = parent_ / ("unpacked." + attempt_name());
    if (::mkdir(folder.c_str(), 0700) != 0) throw IoError("cannot create", folder, errno);
    folder_ = folder;
  }
  return folder_ / name;
}

FileStamp Unpacker::write(const std::filesystem::path& shard, const std::string& name,
                          const std::function<void(const Append&)>& fill) {
  File file(path_of(name), O_RDWR | O_CREAT | O_EXCL);
  std::uint64_t size = 0;
  try {
    fill([&](std::span<const std::byte> bytes) {
      if (progress_.stop) throw UnpackingStopped();
      file.write_at(size, bytes);
      // Otherwise much unwritten data waits for the sync.
      file.start_writeback(size, bytes.size());
      size += bytes.size();
      progress_.bytes += bytes.size();
    });
    file.sync();
  } catch (IoError& error) {
    if (error.code() == ENOSPC || error.code() == EDQUOT) {
      error.add_hint(fmt::format(
          "'{}' has to be unpacked there, and the disk was full after {}. Make room, or unpack it "
          "elsewhere and use the result as `source`.",
          shard.string(), size_text(size)));
    }
    throw;
  }
  return stamp_of(file);
}

FileStamp Unpacker::unpack(const File& shard, std::size_t number) {
  Input input(shard, progress_.stop);
  const auto head = input.head();
  const bool compressed = is_compressed(head, shard.path());
  if (!compressed && !is_stream(shard)) return stamp_of(shard);
  return write(shard.path(), fmt::format("{:06}", number), [&](const Append& append) {
    Inflater inflater(shard.path());
    UnpackedHead unpacked(shard.path());
    const auto judge_and_append = [&](std::span<const std::byte> bytes) {
      unpacked.see(bytes);
      append(bytes);
    };
    for (auto bytes = input.next(); !bytes.empty(); bytes = input.next()) {
      compressed ? inflater.feed(bytes, judge_and_append) : append(bytes);
      input.take(bytes.size());
    }
    if (compressed) inflater.finish();
  });
}

}  // namespace precache
