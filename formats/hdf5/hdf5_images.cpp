// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/bytes/little_endian.hpp"
#include "formats/hdf5/hdf5_finder.hpp"
#include "formats/hdf5/hdf5_labels.hpp"
#include "formats/hdf5/hdf5_readers.hpp"
#include "formats/shard/limits.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

using Bytes = std::span<const std::byte>;
using Path = std::filesystem::path;

constexpr std::uint64_t kReadAtOnce = std::uint64_t{32} << 20;

PixelType pixel_type(const Dataset& dataset) {
  if (dataset.type_class() == H5T_FLOAT) return PixelType::kFloat32;
  const std::size_t size = H5Tget_size(dataset.type);
  const bool is_signed = H5Tget_sign(dataset.type) != H5T_SGN_NONE;
  if (size == 1 && !is_signed) return PixelType::kUint8;
  // Numbers that do not fit in 32 bits are not brightness values. The library clips them, and the
  // result is not one either.
  return size == 2 && !is_signed ? PixelType::kUint16 : PixelType::kInt32;
}

hid_t memory_type(PixelType type) {
  switch (type) {
    case PixelType::kUint8:
      return H5T_NATIVE_UINT8;
    case PixelType::kUint16:
      return H5T_NATIVE_UINT16;
    case PixelType::kInt32:
      return H5T_NATIVE_INT32;
    case PixelType::kFloat32:
      break;
  }
  return H5T_NATIVE_FLOAT;
}

PixelArray array_of(const Finder& found) {
  const Dataset& images = found.images();
  const SpecGuess guess = found.guess_axes(DType::kUint8);  // the axes do not depend on it
  if (!guess.spec || guess.spec->channels == 2 || guess.spec->channels > 4 ||
      images.row_elements() == 0U) {
    found.refuse(fmt::format("'{}' is an array of {}; images have 1, 3 or 4 channels", images.name,
                             fmt::join(images.extents, " x ")));
  }
  return {pixel_type(images), guess.spec->layout, guess.spec->height, guess.spec->width,
          guess.spec->channels};
}

/// The offset of the rows, if they are contiguous in the file and of the wanted type.
std::optional<std::uint64_t> offset_of(const Finder& found, const ImageRows& rows) {
  const Dataset& images = found.images();
  const auto offset = images.filters().empty() ? images.contiguous_offset() : std::nullopt;
  const bool as_wanted = !rows.array || rows.array->type == PixelType::kUint8 ||
                         H5Tequal(images.type, memory_type(rows.array->type)) > 0;
  if (!offset || !as_wanted || rows.count == 0) return std::nullopt;
  found.file().check_range(images, *offset, rows.row_bytes * rows.count);  // no overflow: it fits
  return offset;
}

/// The images alone.
ImageRows describe_rows(const Finder& found) {
  const Dataset& images = found.images();
  found.check_storage(images);
  found.check_row_count();
  ImageRows rows;
  rows.name = images.name;
  rows.count = found.count();
  if (found.kind() == Finder::Kind::kItems) return rows;
  const auto elements = images.row_elements();
  if (!elements || *elements > kLargestRow) {
    throw CorruptData(found.file().path(), 0,
                      fmt::format("the rows of '{}' are too large", images.name));
  }
  if (found.kind() == Finder::Kind::kArray) rows.array = array_of(found);
  rows.row_bytes = rows.array ? rows.array->size_bytes() : *elements * H5Tget_size(images.type);
  if (rows.row_bytes > kLargestRow) {
    found.refuse(fmt::format("the rows of '{}' are too large", images.name));
  }
  rows.offset = offset_of(found, rows);
  return rows;
}

std::vector<std::string> texts_of(const FoundLabels& labels, Bytes file, std::uint64_t count) {
  if (!labels.names.empty()) return labels.names;
  std::vector<std::string> texts;
  for (const std::int64_t number : labels.numbers) texts.push_back(std::to_string(number));
  for (std::uint64_t i = 0; i < count && !labels.column.type.empty(); ++i) {
    const auto bytes = file.subspan(labels.column.base + i * labels.column.stride, 8);
    texts.push_back(std::to_string(static_cast<std::int64_t>(little_endian(bytes))));
  }
  return texts;
}

std::uint64_t rows_per_chunk(const Dataset& images) {
  return std::max<std::uint64_t>(1, images.chunk().front());
}

/// The number of rows to read at once: whole chunks, so that each is unpacked only once, within
/// reasonable memory.
std::uint64_t rows_at_once(const Dataset& images, std::uint64_t row_bytes) {
  const std::uint64_t fitting = std::max<std::uint64_t>(1, kReadAtOnce / row_bytes);
  if (images.layout() != H5D_CHUNKED) return fitting;
  const std::uint64_t per_chunk = rows_per_chunk(images);
  if (per_chunk > kLargestRow / row_bytes) return fitting;
  return fitting < per_chunk ? per_chunk : fitting / per_chunk * per_chunk;
}

/// Reads rows through the library.
struct RowReader {
  const MemoryFile& file;
  const Dataset& images;
  hid_t type;

  void read(std::uint64_t first, std::uint64_t count, void* into) const {
    try {
      read_rows(images, type, first, count, into);
    } catch (const LibraryFailure&) {
      locate_damage(first, count, into);
      throw;
    }
  }

  /// Throws CorruptData at the first chunk that cannot be read.
  void locate_damage(std::uint64_t first, std::uint64_t count, void* into) const {
    if (images.layout() != H5D_CHUNKED) return;
    const std::uint64_t step = rows_per_chunk(images);
    for (std::uint64_t row = first; row < first + count; row += step) {
      try {
        read_rows(images, type, row, std::min(step, first + count - row), into);
      } catch (const LibraryFailure& failure) {
        std::vector<hsize_t> corner(images.extents.size(), 0);
        corner[0] = row;
        haddr_t address = HADDR_UNDEF;
        unsigned mask = 0;
        hsize_t size = 0;
        H5Dget_chunk_info_by_coord(images.id, corner.data(), &mask, &address, &size);
        throw CorruptData(file.path(), address == HADDR_UNDEF ? 0 : address + file.user_block(),
                          fmt::format("the HDF5 library cannot read '{}' from row {} on: {}",
                                      images.name, row, failure.reason));
      }
    }
  }
};

void read_all(const Finder& found, const ImageRows& rows, const std::function<void(Bytes)>& take) {
  const Dataset& images = found.images();
  if (rows.row_bytes == 0) {
    const ItemMemory memory;
    for (std::uint64_t i = 0; i < rows.count; ++i) take(read_item(images, i, memory));
    return;
  }
  const std::uint64_t step = rows_at_once(images, rows.row_bytes);
  std::vector<std::byte> buffer(std::min(step, rows.count) * rows.row_bytes);
  const RowReader reader{found.file(), images,
                         rows.array ? memory_type(rows.array->type) : hid_t{images.type}};
  for (std::uint64_t first = 0; first < rows.count; first += step) {
    const std::uint64_t count = std::min(step, rows.count - first);
    reader.read(first, count, buffer.data());
    take(Bytes(buffer).first(count * rows.row_bytes));
  }
}

}  // namespace

ImageRows find_images(Bytes file, const Path& path, const SampleKeys& keys) {
  return with_library(path, [&] {
    Finder found(file, path, keys);
    ImageRows rows = describe_rows(found);
    if (rows.count == 0) return rows;
    rows.labels = texts_of(found.find_labels(), file, rows.count);
    if (rows.labels.empty()) rows.maybe_labels = found.maybe_labels();
    if (const auto dataset = found.find_keys()) {
      found.check_storage(*dataset);
      rows.keys = read_texts(*dataset, kLongestKey);
    }
    rows.classes = found.find_classes();
    return rows;
  });
}

void read_rows(Bytes file, const Path& path, const ImageRows& rows,
               const std::function<void(Bytes)>& take) {
  with_library(path, [&] {
    const SampleKeys keys{.image = rows.name};
    const Finder found(file, path, keys);
    const ImageRows now = describe_rows(found);
    if (now.count != rows.count || now.row_bytes != rows.row_bytes) {
      throw CorruptData(path, 0, fmt::format("'{}' changed since it was listed", rows.name));
    }
    read_all(found, now, take);
  });
}

std::uint64_t check_images(Bytes file, const Path& path) {
  try {
    const ImageRows rows = find_images(file, path, {});
    read_rows(file, path, rows, [](Bytes) {});
    return rows.count;
  } catch (const InvalidArgument& error) {  // the caller named no datasets
    throw Unsupported(error.what(), error.hint());
  }
}

}  // namespace precache::hdf5
