// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/global_heaps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/little_endian.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

constexpr std::string_view kSignature = "GCOL";
constexpr std::uint64_t kCollectionHeader = 16;  // signature, version, 3 unused, size
constexpr std::uint64_t kObjectHeader = 16;      // number, users, 4 unused, size
constexpr std::uint64_t kAlignment = 8;          // of objects

}  // namespace

GlobalHeaps::Extent GlobalHeaps::follow(std::uint64_t offset) {
  const auto reference = file_.subspan(offset, kReferenceBytes);
  const std::uint64_t length = little_endian(reference.first(4));
  if (length == 0) return {offset, 0};
  const std::uint64_t number = little_endian(reference.subspan(12, 4));
  const auto& objects = collection(little_endian(reference.subspan(4, 8)), offset);
  const auto found = std::ranges::lower_bound(objects, number, {}, &Object::number);
  if (found == objects.end() || found->number != number) {
    throw CorruptData(
        path_, offset,
        fmt::format("it refers to object {} of a heap, which does not exist", number));
  }
  if (length > found->extent.bytes) {
    throw CorruptData(
        path_, offset,
        fmt::format("it refers to {} bytes of an object of {} bytes", length, found->extent.bytes));
  }
  return {found->extent.offset, length};
}

const std::vector<GlobalHeaps::Object>& GlobalHeaps::collection(std::uint64_t address,
                                                                std::uint64_t reference) {
  if (const auto known = collections_.find(address); known != collections_.end()) {
    return known->second;
  }
  std::uint64_t offset = 0;
  if (__builtin_add_overflow(address, base_, &offset) || offset > file_.size() ||
      file_.size() - offset < kCollectionHeader) {
    throw CorruptData(path_, reference, "it refers to a heap past the end of the file");
  }
  const auto header = file_.subspan(offset, kCollectionHeader);
  if (as_text(header.first(4)) != kSignature || header[4] != std::byte{1}) {
    throw CorruptData(path_, offset,
                      "there is no heap here, but variable-length data refers to it");
  }
  const std::uint64_t size = little_endian(header.subspan(8, 8));
  if (size < kCollectionHeader || size > file_.size() - offset) {
    throw CorruptData(path_, offset, "a heap runs past the end of the file");
  }
  // Valid heaps do not overlap. This limits the work to the size of the file.
  if (size > file_.size() - collection_bytes_) {
    throw CorruptData(path_, offset, "its heaps overlap");
  }
  collection_bytes_ += size;
  return collections_.emplace(address, read_collection(offset, size)).first->second;
}

std::vector<GlobalHeaps::Object> GlobalHeaps::read_collection(std::uint64_t offset,
                                                              std::uint64_t size) const {
  std::vector<Object> objects;
  std::uint64_t at = kCollectionHeader;
  while (size - at >= kObjectHeader) {
    const auto header = file_.subspan(offset + at, kObjectHeader);
    const std::uint64_t number = little_endian(header.first(2));
    if (number == 0) break;  // the rest is free
    const std::uint64_t bytes = little_endian(header.subspan(8, 8));
    at += kObjectHeader;
    if (bytes > size - at) {
      throw CorruptData(path_, offset + at, "an object runs past the end of its heap");
    }
    objects.push_back({number, {offset + at, bytes}});
    at += std::min(size - at, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  std::ranges::sort(objects, {}, &Object::number);
  return objects;
}

}  // namespace precache::hdf5
