// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_row_offsets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

// The library (1.10) goes through all chunks before one to find it: 0.3 s for these, 8 s for
// 20,000.
constexpr std::uint64_t kMostChunks = 4096;

void find_chunks(const MemoryFile& file, const Dataset& images, RowOffsets& rows) {
  const auto shape = images.chunk();
  if (!std::ranges::equal(std::span(shape).subspan(1), std::span(images.extents).subspan(1))) {
    refuse_mapping(file, fmt::format("rows of '{}' are split over chunks", images.name));
  }
  if (shape[0] == 0) throw CorruptData(file.path(), 0, "a chunk has no rows");
  rows.rows_per_chunk = shape[0];
  const std::uint64_t count = (rows.count - 1) / shape[0] + 1;
  if (count > kMostChunks) {
    refuse_mapping(file, fmt::format("'{}' has more than {} chunks", images.name, kMostChunks));
  }
  const Id space(H5Dget_space(images.id), H5Sclose);
  hsize_t stored = 0;
  check(H5Dget_num_chunks(images.id, space, &stored));
  if (stored != count) {
    refuse_mapping(file,
                   fmt::format("some chunks of '{}' have no place in the file yet", images.name));
  }
  rows.chunks.assign(count, HADDR_UNDEF);
  const std::uint64_t user_block = file.user_block();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::array<hsize_t, 4> first{};
    unsigned filter_mask = 0;
    haddr_t address = 0;
    hsize_t size = 0;
    check(H5Dget_chunk_info(images.id, space, i, first.data(), &filter_mask, &address, &size));
    if (first[0] >= rows.count)
      throw CorruptData(file.path(), 0, "a chunk lies outside its dataset");
    const std::uint64_t used = std::min<std::uint64_t>(shape[0], rows.count - first[0]);
    address += user_block;  // which the library (1.10) does not count here, unlike in H5Dget_offset
    file.check_range(images, address, used * rows.bytes);
    rows.chunks[first[0] / shape[0]] = address;
  }
  if (std::ranges::find(rows.chunks, HADDR_UNDEF) != rows.chunks.end()) {
    throw CorruptData(file.path(), 0, fmt::format("a chunk of '{}' stands twice", images.name));
  }
}

}  // namespace

void refuse_mapping(const MemoryFile& file, const std::string& reason) {
  throw Unsupported(
      fmt::format("'{}' cannot be read by a mapping: {}", file.path().string(), reason));
}

RowOffsets find_rows(const MemoryFile& file, const Dataset& images, std::uint64_t element_bytes) {
  RowOffsets rows{.count = images.extents[0], .chunks = {}};
  const auto elements = images.row_elements();
  if (!elements || __builtin_mul_overflow(element_bytes, *elements, &rows.bytes)) {
    throw CorruptData(file.path(), 0, "the extents of its images exceed 64 bits");
  }
  if (const auto filters = images.filters(); !filters.empty()) {
    refuse_mapping(file, fmt::format("'{}' is stored with filters ({})", images.name,
                                     fmt::join(filters, ", ")));
  }
  if (images.lies_in_other_files()) {
    refuse_mapping(file, fmt::format("the data of '{}' lies in other files", images.name));
  }
  if (images.layout() == H5D_COMPACT) {
    refuse_mapping(file, fmt::format("'{}' is stored within its header", images.name));
  }
  if (rows.count == 0 || rows.bytes == 0) return {};
  if (rows.count > file.bytes().size() / rows.bytes) {
    throw CorruptData(file.path(), 0, fmt::format("'{}' is larger than the file", images.name));
  }
  if (images.layout() == H5D_CHUNKED) {
    find_chunks(file, images, rows);
  } else {
    const auto offset = images.contiguous_offset();
    if (!offset)
      refuse_mapping(file, fmt::format("'{}' has no place in the file yet", images.name));
    file.check_range(images, *offset, rows.count * rows.bytes);
    rows.base = *offset;
  }
  return rows;
}

}  // namespace precache::hdf5
