// SPDX-License-Identifier: Apache-2.0
#include "convert/source/listing.hpp"

#include <fmt/format.h>
#include <isa-l/crc64.h>
#include <oneapi/tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

namespace precache {
namespace {

constexpr std::size_t kFirstBlock = std::size_t{4} << 10;  // many listings are of one small tar
constexpr std::size_t kLargestBlock = std::size_t{1} << 20;

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
    if (file.targets.empty()) continue;
    const std::uint64_t targets_bytes = file.targets.size();
    crc = extend(crc, &targets_bytes, 1);
    crc = extend(crc, file.targets.data(), file.targets.size());
  }
  return crc;
}

}  // namespace

char* Listing::reserve(std::size_t bytes) {
  if (blocks_.empty() || blocks_.back().size - blocks_.back().used < bytes) {
    const std::size_t last = blocks_.empty() ? kFirstBlock / 2 : blocks_.back().size;
    const std::size_t size = std::max(bytes, std::min(2 * last, kLargestBlock));
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), 0, size});
  }
  Block& block = blocks_.back();
  char* const place = block.bytes.get() + block.used;
  block.used += bytes;
  return place;
}

void Listing::add(const ListedFile& file) {
  char* const text = reserve(file.path.size() + file.targets.size());
  std::ranges::copy(file.targets, std::ranges::copy(file.path, text).out);
  entries_.push_back({text, static_cast<std::uint32_t>(file.path.size()),
                      static_cast<std::uint32_t>(file.targets.size()), file.shard, file.size,
                      file.mtime_ns, file.label, file.offset});
}

void Listing::append(const Listing& other) {
  for (std::size_t i = 0; i < other.size(); ++i) add(other[i]);
}

void Listing::append(Listing&& other) {
  // Entries leave `other` one by one, so that there are never two of each.
  for (; !other.entries_.empty(); other.entries_.pop_front()) {
    entries_.push_back(other.entries_.front());
  }
  std::ranges::move(other.blocks_, std::back_inserter(blocks_));
  other.blocks_.clear();
}

Listing Listing::subset(std::span<const std::uint64_t> samples) const {
  Listing chosen;
  for (const std::uint64_t sample : samples) chosen.add((*this)[sample]);
  return chosen;
}

void Listing::sort_by_path() {
  const auto place = [](const Entry& entry) {
    return std::tuple(std::string_view(entry.text, entry.path_bytes), entry.shard, entry.offset);
  };
  tbb::parallel_sort(entries_.begin(), entries_.end(),
                     [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
}

ListedFile Listing::operator[](std::size_t index) const {
  const Entry& entry = entries_[index];
  return {std::string_view(entry.text, entry.path_bytes),
          entry.size,
          entry.mtime_ns,
          entry.label,
          entry.shard,
          entry.offset,
          std::string_view(entry.text + entry.path_bytes, entry.targets_bytes)};
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

}  // namespace precache
