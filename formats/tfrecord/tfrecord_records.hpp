// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

/// Reads TFRecord files.
namespace precache::tfrecord {

inline constexpr std::uint64_t kLengthBytes = 12;  // length and its CRC before the data
inline constexpr std::uint64_t kFooterBytes = 4;   // the data's CRC after it

struct Record {
  std::uint64_t begin = 0;  // of its length
  std::uint64_t data = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t end = 0;  // where the next record begins
};

/// Whether the bytes start with a length and the right CRC of it.
[[nodiscard]] bool has_length(std::span<const std::byte> bytes);

/// Whether the data of a record of `file` matches its CRC.
[[nodiscard]] bool has_right_crc(const Record& record, std::span<const std::byte> file);

/// Walks over the records of a file in memory. Checks the CRC of every length and does not read
/// data.
class RecordCursor {
 public:
  /// Borrows `file`. The first record is the one at `begin`.  REQUIRES: begin <= file.size().
  RecordCursor(std::span<const std::byte> file, std::filesystem::path path, std::uint64_t begin = 0)
      : file_(file), path_(std::move(path)), at_(begin) {}

  /// None at the end. Throws CorruptData.
  [[nodiscard]] std::optional<Record> next();

 private:
  std::span<const std::byte> file_;
  std::filesystem::path path_;
  std::uint64_t at_;
};

}  // namespace precache::tfrecord
