// SPDX-License-Identifier: Apache-2.0
#include "convert/source/unpacker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <optional>
#include <vector>

#include "convert/source/retry.hpp"
#include "formats/base/size_text.hpp"
#include "formats/file_kind.hpp"
#include "formats/scan.hpp"
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

/// Standard input is one even if it is a file, as nobody can open it again.
bool is_stream(const File& file) { return file.path() == "-" || !S_ISREG(status_of(file).st_mode); }

/// Reads a file or a pipe from its beginning to its end.
class Input {
 public:
  Input(const File& file, const std::atomic<bool>& stop)
      : file_(file), stop_(stop), is_stream_(is_stream(file)), piece_(kPiece) {}

  /// How much of it was taken.
  [[nodiscard]] std::uint64_t offset() const { return end_ - unread_.size(); }
  void take(std::size_t bytes) { unread_ = unread_.subspan(bytes); }

  /// The next bytes; none at the end. They stay until the call after they were all taken.
  std::span<const std::byte> next() {
    if (unread_.empty()) {
      unread_ = std::span(piece_).first(read(piece_));
      end_ += unread_.size();
    }
    return unread_;
  }

  /// As many of the first bytes as tell what it is.  REQUIRES: nothing was taken.
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

  /// Until there is something to read, so that a pipe without a writer can be given up.
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

/// gzip, also in several members, or zlib.
class Inflater {
 public:
  Inflater(Input& input, const std::filesystem::path& path) : input_(input), path_(path) {
    // 32: by the header, whether it is gzip's or zlib's.
    if (inflateInit2(&stream_, MAX_WBITS + 32) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  void run(const Unpacker::Append& append) {
    std::vector<std::byte> piece(kPiece);
    bool is_whole = false;
    for (auto bytes = input_.next(); !bytes.empty(); bytes = input_.next()) {
      if (is_whole && !begin_member(bytes)) continue;
      is_whole = false;
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
      stream_.avail_in = static_cast<uInt>(bytes.size());
      int result = Z_OK;
      do {  // what is left in the stream when the piece is full must come out before the end
        stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
        stream_.avail_out = static_cast<uInt>(piece.size());
        result = inflate(&stream_, Z_NO_FLUSH);
        append(std::span(piece).first(piece.size() - stream_.avail_out));
      } while (result == Z_OK && stream_.avail_out == 0);
      input_.take(bytes.size() - stream_.avail_in);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      is_whole = result == Z_STREAM_END;
      if (!is_whole && result != Z_OK && result != Z_BUF_ERROR) {
        fail(fmt::format("what is compressed is broken ({})",
                         stream_.msg == nullptr ? "it needs a dictionary" : stream_.msg));
      }
    }
    if (!is_whole) fail("what is compressed ends too early");
  }

 private:
  /// Behind a whole member there may be another one, or zeros of a tape.
  bool begin_member(std::span<const std::byte> bytes) {
    const auto zeros = std::ranges::find_if(bytes, [](std::byte b) { return b != std::byte{0}; });
    if (zeros != bytes.begin()) {
      input_.take(static_cast<std::size_t>(zeros - bytes.begin()));
      has_zeros_ = true;
      return false;
    }
    if (has_zeros_ || bytes[0] != std::byte{0x1f}) fail("there is more behind what is compressed");
    inflateReset(&stream_);
    return true;
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw CorruptData(path_, input_.offset(), reason);
  }

  Input& input_;
  const std::filesystem::path& path_;
  z_stream stream_{};
  bool has_zeros_ = false;
};

bool is_compressed(std::span<const std::byte> head, const std::filesystem::path& path) {
  if (begins_as_shard(head)) return false;
  const FileKind kind = file_kind(head);
  if (kind.group != FileKind::Group::kCompressed) return false;
  if (kind.name == "gzip" || kind.name == "zlib") return true;
  throw Unsupported(fmt::format("'{}' is compressed by {}", path.string(), kind.name),
                    "Only gzip and zlib are unpacked; pipe it through another program: "
                    "... | precache build - OUT");
}

}  // namespace

FileStamp stamp_of(const File& file) {
  const struct stat status = status_of(file);
  return {file.path(), static_cast<std::uint64_t>(status.st_size), mtime_ns(status)};
}

Unpacker::~Unpacker() {
  std::error_code ignored;  // what cannot be removed does no harm
  if (!folder_.empty() && !is_kept_) std::filesystem::remove_all(folder_, ignored);
}

std::filesystem::path Unpacker::path_of(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  if (folder_.empty()) {
    std::string folder = (parent_ / "unpacked.XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) throw IoError("cannot create", folder, errno);
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
      // Or a fast disk's worth of unwritten data waits for the sync.
      file.start_writeback(size, bytes.size());
      size += bytes.size();
      progress_.bytes += bytes.size();
    });
    file.sync();
  } catch (IoError& error) {
    if (error.code() == ENOSPC || error.code() == EDQUOT) {
      error.add_hint(fmt::format(
          "'{}' has to be unpacked there, and {} of it filled the disk. Make room, or unpack it "
          "elsewhere and name the result.",
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
    if (compressed) return Inflater(input, shard.path()).run(append);
    for (auto bytes = input.next(); !bytes.empty(); bytes = input.next()) {
      append(bytes);
      input.take(bytes.size());
    }
  });
}

}  // namespace precache
