// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Reads tar archives of all dialects: ustar, pax, GNU and Unix version 7.
namespace precache::tar {

enum class EntryType { kFile, kDirectory, kHardLink, kSymbolicLink, kSparse, kOther };

/// Where the name of an entry comes from.
enum class NameSource {
  kUstar,  // name and prefix of the header at `Entry::name_header`
  kPax,    // the first record of the pax header at `Entry::name_header`
  kOther
};

struct Entry {
  std::string_view name;  // borrowed from the cursor and the file, until the next call
  std::string_view link;  // of a hard link, the name of its target; borrowed in the same way
  EntryType type = EntryType::kFile;
  NameSource name_source = NameSource::kOther;
  std::uint64_t name_header = 0;
  std::uint64_t begin = 0;  // of its first header, which may be an extended one
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  std::uint64_t end = 0;                  // where the next entry begins
  std::optional<std::uint32_t> data_crc;  // CRC-32C from `data` to `end`, if precache wrote it
};

/// Whether the data of an entry of `file` matches its CRC, if it has one. Reads all of the data.
[[nodiscard]] bool has_right_crc(const Entry& entry, std::span<const std::byte> file);

/// Whether the block is a tar header with the right checksum.
[[nodiscard]] bool is_header(std::span<const std::byte> block);

/// Walks over the entries of an archive in memory. Touches headers only, never data.
///
/// Ends at the first block of zeros, or at the end of the file if an entry ends there.
class EntryCursor {
 public:
  /// Borrows `file`. The first header is the one at `begin`.  REQUIRES: begin <= file.size().
  EntryCursor(std::span<const std::byte> file, std::filesystem::path path, std::uint64_t begin = 0);

  /// None at the end. Throws CorruptData.
  [[nodiscard]] std::optional<Entry> next();

 private:
  /// The values that extended headers give to the entry after them.
  struct Extension {
    std::optional<std::string_view> path;
    std::optional<std::string_view> link;
    std::optional<std::uint64_t> size;
    std::uint64_t path_header = 0;
    bool path_is_first = false;
    bool is_sparse = false;
  };
  struct Header {
    std::span<const std::byte> block;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    char type = 0;
  };

  [[nodiscard]] std::optional<Header> read_header();
  [[nodiscard]] std::span<const std::byte> data_of(const Header& header) const;
  /// The end of the last data block, including its padding.
  [[nodiscard]] std::uint64_t data_end(const Header& header) const;
  void read_extension(const Header& header);
  void read_pax(const Header& header, Extension& extension) const;
  [[nodiscard]] Entry make_entry(const Header& header);
  void name_entry(const Header& header, Entry& entry);
  [[noreturn]] void fail(std::uint64_t offset, const std::string& reason) const;

  std::span<const std::byte> file_;
  std::filesystem::path path_;
  std::uint64_t at_;
  Extension global_;
  Extension local_;
  std::optional<std::string_view> long_name_;
  std::optional<std::string_view> long_link_;
  std::string joined_name_;
};

}  // namespace precache::tar
