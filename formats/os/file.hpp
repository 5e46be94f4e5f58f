// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace precache {

/// Two states of a file that differ here may have different contents.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileState&) const = default;
};

/// An open file descriptor that closes itself and knows its path for messages. All calls throw
/// IoError.
///
/// Several threads may read and write at offsets at once.
class File {
 public:
  File() = default;
  File(int descriptor, std::filesystem::path path) : fd_(descriptor), path_(std::move(path)) {}
  /// `flags` as for open(2); O_CLOEXEC is added.
  File(const std::filesystem::path& path, int flags);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] FileState state() const;
  [[nodiscard]] std::uint64_t size() const { return state().bytes; }
  [[nodiscard]] std::int64_t mtime_ns() const { return state().modified_ns; }

  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Reserves disk space for `bytes` bytes and makes the file that long; on file systems that
  /// cannot reserve space, only sets the length.
  void preallocate(std::uint64_t bytes);
  void truncate(std::uint64_t bytes);
  /// Asks the system to start writing a range to disk, so that a later sync() has less to wait for.
  void start_writeback(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void sync();

  /// Takes an advisory lock on the file without waiting; false if another process holds a
  /// conflicting lock. On a file system without locks, every process gets every lock.
  [[nodiscard]] bool try_lock(bool exclusive);
  /// Waits for an exclusive lock.
  void lock();
  /// Whether the file is still at its path: it may have been renamed or removed before the lock was
  /// taken.
  [[nodiscard]] bool is_at_path() const;

 private:
  int fd_ = -1;
  std::filesystem::path path_;
};

/// How to ask for the state of a file. Network file systems answer stat(2) from a cache that may be
/// seconds old; open(2) makes them ask their server. If no descriptor is free, stat(2) is used.
enum class Ask { kByStat, kByOpening };

/// The state of the file that has this path; none if there is no such file. Throws IoError.
[[nodiscard]] std::optional<FileState> state_at(const std::filesystem::path& path, Ask ask);

[[nodiscard]] std::vector<std::byte> read_file(const std::filesystem::path& path);

/// Whether the text can name an entry of a folder: nothing outside of the folder or below it.
[[nodiscard]] bool is_file_name(std::string_view text);

/// Renames and makes the new name durable.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

[[nodiscard]] inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace precache
