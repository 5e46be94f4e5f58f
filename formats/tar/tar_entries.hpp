// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Reads tar archives of others: ustar, pax, GNU and the headers of Unix version 7.
namespace precache::tar {

enum class EntryType { kFile, kDirectory, kHardLink, kSymbolicLink, kSparse, kOther };

/// What the name of an entry was taken from.
enum class NameSource {
  kUstar,  // name and prefix of the header at `Entry::name_header`
  kPax,    // the first record of the pax header at `Entry::name_header`
  kOther
};

struct Entry {
  std::string_view name;  // borrowed from the cursor and the file, until the next call
  std::string_view link;  // of a hard link, the name of the entry that it stands for; likewise
  EntryType type = EntryType::kFile;
  NameSource name_source = NameSource::kOther;
  std::uint64_t name_header = 0;
  std::uint64_t begin = 0;  // of its first header, be it an extended one
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  std::uint64_t end = 0;                  // where the next entry begins
  std::optional<std::uint32_t> data_crc;  // CRC-32C of all from `data` to `end`; ours tell it
};

/// Whether an entry of `file` has the CRC that it tells, if it tells one. Reads all of its data.
[[nodiscard]] bool has_right_crc(const Entry& entry, std::span<const std::byte> file);

/// Whether the block is a tar header whose checksum is right.
[[nodiscard]] bool is_header(std::span<const std::byte> block);

/// Walks over the entries of an archive in memory. Touches headers only, never data.
///
/// Ends at the first block of zeros, or where the file ends right after an entry.
class EntryCursor {
 public:
  /// Borrows `file`. The first header is the one at `begin`.  REQUIRES: begin <= file.size().
  EntryCursor(std::span<const std::byte> file, std::filesystem::path path, std::uint64_t begin = 0);

  /// None at the end. Throws CorruptData.
  [[nodiscard]] std::optional<Entry> next();

 private:
  /// What extended headers say of the entry after them.
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
  /// Blocks, with what fills the last one.
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
