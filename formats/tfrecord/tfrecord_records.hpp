// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

/// Reads TFRecord files of others.
namespace precache::tfrecord {

inline constexpr std::uint64_t kLengthBytes = 12;  // length and its CRC before the data
inline constexpr std::uint64_t kFooterBytes = 4;   // the data's CRC after it

struct Record {
  std::uint64_t begin = 0;  // of its length
  std::uint64_t data = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t end = 0;  // where the next record begins
};

/// Whether the bytes begin with a length and the CRC that belongs to it.
[[nodiscard]] bool has_length(std::span<const std::byte> bytes);

/// Whether a record of `file` has the CRC that belongs to its data.
[[nodiscard]] bool has_right_crc(const Record& record, std::span<const std::byte> file);

/// Walks over the records of a file in memory. Checks the CRC of every length; data is not touched.
class RecordCursor {
 public:
  /// Borrows `file`.
  RecordCursor(std::span<const std::byte> file, std::filesystem::path path);

  /// None at the end. Throws CorruptData.
  [[nodiscard]] std::optional<Record> next();

 private:
  std::span<const std::byte> file_;
  std::filesystem::path path_;
  std::uint64_t at_ = 0;
};

}  // namespace precache::tfrecord
