// SPDX-License-Identifier: Apache-2.0
#include "convert/source/listing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <isa-l/crc64.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

// The file has this header, the entries and the paths, in the byte order of the machine.
struct FileHeader {
  char magic[16] = {'p', 'r', 'e', 'c', 'a', 'c', 'h', 'e',
                    ' ', 'l', 'i', 's', 't', ' ', '2', '\n'};
  std::uint64_t entries = 0;
  std::uint64_t path_bytes = 0;
  std::uint32_t entries_crc = 0;
  std::uint32_t paths_crc = 0;
};

template <typename T>
std::uint64_t extend(std::uint64_t crc, const T* data, std::size_t count) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(data);
  return crc64_ecma_refl(crc, bytes, count * sizeof(T));
}

/// Covers the paths and the numbers that `numbers_of` picks.
template <typename Numbers>
std::uint64_t crc_of(const Listing& listing, const Numbers& numbers_of) {
  std::uint64_t crc = 0;
  for (std::size_t i = 0; i < listing.size(); ++i) {
    const ListedFile file = listing[i];
    const auto numbers = numbers_of(file);
    crc = extend(crc, numbers.data(), numbers.size());
    crc = extend(crc, file.path.data(), file.path.size());
  }
  return crc;
}

}  // namespace

void Listing::add(const ListedFile& file) {
  entries_.push_back({paths_.size(), static_cast<std::uint32_t>(file.path.size()), file.shard,
                      file.size, file.mtime_ns, file.label, file.offset});
  paths_ += file.path;
}

void Listing::append(const Listing& other) {
  for (Entry entry : other.entries_) {
    entry.path_offset += paths_.size();
    entries_.push_back(entry);
  }
  paths_ += other.paths_;
}

void Listing::sort_by_path() {
  const std::string_view all = paths_;
  std::ranges::sort(entries_, {}, [&](const Entry& entry) {
    return std::tuple(all.substr(entry.path_offset, entry.path_bytes), entry.shard, entry.offset);
  });
}

ListedFile Listing::operator[](std::size_t index) const {
  const Entry& entry = entries_[index];
  return {std::string_view(paths_).substr(entry.path_offset, entry.path_bytes),
          entry.size,
          entry.mtime_ns,
          entry.label,
          entry.shard,
          entry.offset};
}

std::optional<LabelRange> Listing::labels() const {
  std::optional<LabelRange> range;
  for (const Entry& entry : entries_) {
    if (entry.label == -1) continue;
    if (!range) range = LabelRange{entry.label, entry.label};
    range->smallest = std::min(range->smallest, entry.label);
    range->largest = std::max(range->largest, entry.label);
  }
  return range;
}

std::string Listing::fingerprint() const {
  return fmt::format(
      "crc64:{:016x}", crc_of(*this, [](const ListedFile& file) {
        return std::array{file.path.size(), file.size, static_cast<std::uint64_t>(file.label)};
      }));
}

std::uint64_t Listing::stamp() const {
  return crc_of(*this, [](const ListedFile& file) {
    return std::array{file.path.size(),
                      file.size,
                      static_cast<std::uint64_t>(file.mtime_ns),
                      static_cast<std::uint64_t>(file.label),
                      std::uint64_t{file.shard},
                      file.offset};
  });
}

void Listing::save(const std::filesystem::path& path) const {
  const auto entry_bytes = std::as_bytes(std::span(entries_));
  FileHeader header;
  header.entries = entries_.size();
  header.path_bytes = paths_.size();
  header.entries_crc = crc32c::value(entry_bytes);
  header.paths_crc = crc32c::value(as_bytes(paths_));
  TemporaryFile temporary(path);
  temporary.file().write_at(0, std::as_bytes(std::span(&header, 1)));
  temporary.file().write_at(sizeof header, entry_bytes);
  temporary.file().write_at(sizeof header + entry_bytes.size(), as_bytes(paths_));
  temporary.commit();
}

Listing Listing::load(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  const std::uint64_t size = file.size();
  FileHeader header;
  if (size < sizeof header) throw CorruptData(path, 0, "the listing is too short");
  file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  if (std::memcmp(header.magic, FileHeader().magic, sizeof header.magic) != 0) {
    throw CorruptData(path, 0, "this is not a listing of this version");
  }
  const std::uint64_t rest = size - sizeof header;
  if (header.entries > rest / sizeof(Entry) ||
      rest - header.entries * sizeof(Entry) != header.path_bytes) {
    throw CorruptData(path, 16, "the size of the listing does not match its header");
  }
  Listing listing;
  listing.entries_.resize(header.entries);
  listing.paths_.resize(header.path_bytes);
  const auto entry_bytes = std::as_writable_bytes(std::span(listing.entries_));
  file.read_at(sizeof header, entry_bytes);
  file.read_at(sizeof header + entry_bytes.size(),
               std::as_writable_bytes(std::span(listing.paths_.data(), listing.paths_.size())));
  if (crc32c::value(entry_bytes) != header.entries_crc ||
      crc32c::value(as_bytes(listing.paths_)) != header.paths_crc) {
    throw CorruptData(path, sizeof header, "the listing's checksum is wrong");
  }
  for (const Entry& entry : listing.entries_) {
    if (entry.path_offset > listing.paths_.size() ||
        entry.path_bytes > listing.paths_.size() - entry.path_offset) {
      throw CorruptData(path, sizeof header, "a path is outside the listing");
    }
  }
  return listing;
}

}  // namespace precache
