// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_images.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/hdf5/dataset_names.hpp"
#include "formats/hdf5/hdf5_labels.hpp"
#include "formats/hdf5/hdf5_objects.hpp"
#include "formats/hdf5/hdf5_rows.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/spec_guess.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

constexpr std::array kKeyNames{"keys", "filenames", "file_names", "names"};

// No filter makes more of a byte: deflate's limit is 1032.
constexpr std::uint64_t kMostUnpacked = 1100;
// Each sample costs memory, so there have to be bytes of the file for each.
constexpr std::uint64_t kSmallestSample = 16;
constexpr std::uint64_t kLargestRow = std::uint64_t{1} << 30;
constexpr std::uint64_t kLargestChunk = std::uint64_t{1} << 30;
constexpr std::uint64_t kReadAtOnce = std::uint64_t{32} << 20;
constexpr std::size_t kLongestText = 4096;
constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 20;  // of names of classes

using Bytes = std::span<const std::byte>;

bool is_bytes(const Dataset& dataset) {
  return dataset.type_class() == H5T_INTEGER && H5Tget_size(dataset.type) == 1;
}

bool is_fixed_bytes(const Dataset& dataset) {
  if (dataset.extents.size() == 2) return is_bytes(dataset);
  return dataset.extents.size() == 1 &&
         (dataset.type_class() == H5T_OPAQUE ||
          (dataset.type_class() == H5T_STRING && H5Tis_variable_str(dataset.type) == 0));
}

bool is_array(const Dataset& dataset) {
  const H5T_class_t kind = dataset.type_class();
  return (dataset.extents.size() == 3 || dataset.extents.size() == 4) &&
         (kind == H5T_INTEGER || kind == H5T_FLOAT);
}

PixelType pixel_type(const Dataset& dataset) {
  if (dataset.type_class() == H5T_FLOAT) return PixelType::kFloat32;
  const std::size_t size = H5Tget_size(dataset.type);
  const bool is_signed = H5Tget_sign(dataset.type) != H5T_SGN_NONE;
  if (size == 1 && !is_signed) return PixelType::kUint8;
  // What does not fit 32 bits is no brightness; the library clips it, and it stays none.
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

class Finder {
 public:
  Finder(Bytes file, const std::filesystem::path& path)
      : size_(file.size()), path_(path), file_(file) {}

  ImageRows run(const std::string& image_name, const std::string& label_name) {
    const Dataset images = find(image_name);
    if (const auto matlab = refuse_matlab(images)) refuse(matlab->reason, matlab->hint);
    check_storage(images);
    ImageRows rows;
    rows.name = images.name;
    rows.count = images.extents[0];
    if (rows.count > size_ / kSmallestSample) refuse("its rows are too small for images");
    describe_rows(images, rows);
    const auto slash = images.name.rfind('/');
    if (slash != std::string::npos) group_ = images.name.substr(0, slash + 1);
    if (rows.count == 0) return rows;
    find_labels(rows, label_name);
    for (const char* const name : kKeyNames) {
      if (rows.keys.empty()) rows.keys = texts(group_ + name, rows.count);
    }
    rows.classes = class_names_of(file_, group_, rows.name, size_);
    for (const char* const name : kClassNames) {
      if (rows.classes.empty()) rows.classes = texts(group_ + name, std::nullopt);
    }
    return rows;
  }

  void read_all(const ImageRows& rows, const std::function<void(Bytes)>& take) {
    const auto images = open_dataset(file_, rows.name);
    if (!images) throw CorruptData(path_, 0, "its images are gone");
    if (rows.row_bytes == 0) {
      const ItemMemory memory;
      for (std::uint64_t i = 0; i < rows.count; ++i) take(read_item(*images, i, memory));
      return;
    }
    const std::uint64_t step = rows_at_once(*images, rows);
    std::vector<std::byte> buffer(std::min(step, rows.count) * rows.row_bytes);
    const hid_t type = rows.array                            ? memory_type(rows.array->type)
                       : images->type_class() == H5T_INTEGER ? H5T_NATIVE_UINT8
                                                             : static_cast<hid_t>(images->type);
    for (std::uint64_t first = 0; first < rows.count; first += step) {
      const std::uint64_t count = std::min(step, rows.count - first);
      try {
        read_rows(*images, type, first, count, buffer.data());
      } catch (const LibraryFailure&) {
        locate_damage(*images, type, first, count, buffer.data());
        throw;
      }
      take(Bytes(buffer).first(count * rows.row_bytes));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& reason, const std::string& hint = {}) const {
    throw Unsupported(fmt::format("'{}' has no images to build from: {}", path_.string(), reason),
                      hint);
  }

  [[nodiscard]] bool may_be_images(const Dataset& dataset) const {
    if (is_array(dataset) || is_various_bytes(dataset)) return true;
    if (!is_fixed_bytes(dataset) || dataset.extents[0] == 0) return false;
    check_storage(dataset);
    const std::uint64_t bytes = row_elements(dataset) * H5Tget_size(dataset.type);
    if (bytes > kLargestItem) return false;
    std::vector<std::byte> first(bytes);
    read_rows(dataset, is_bytes(dataset) ? H5T_NATIVE_UINT8 : static_cast<hid_t>(dataset.type), 0,
              1, first.data());
    const std::string_view kind = image_file_kind(first);
    return kind == "JPEG" || kind == "PNG";
  }

  [[nodiscard]] Dataset find(const std::string& given) const {
    if (!given.empty()) {
      auto dataset = open_dataset(file_, without_slash(given));
      if (dataset && may_be_images(*dataset)) return std::move(*dataset);
      throw InvalidArgument(
          dataset ? fmt::format("'{}' of '{}' holds {} in {} axes, no images", given,
                                path_.string(), dataset->type_text(), dataset->extents.size())
                  : fmt::format("'{}' has no dataset '{}'", path_.string(), given),
          fmt::format("It has: {}.", fmt::join(dataset_names(file_), ", ")));
    }
    for (const char* const name : kImageNames) {
      auto dataset = open_dataset(file_, name);
      if (dataset && may_be_images(*dataset)) return std::move(*dataset);
    }
    std::vector<std::string> found;
    for (const std::string& name : dataset_names(file_)) {
      if (std::ranges::find(kLabelNames, name.substr(name.rfind('/') + 1)) != kLabelNames.end()) {
        continue;
      }
      const auto dataset = open_dataset(file_, name);
      if (dataset && may_be_images(*dataset)) found.push_back(name);
    }
    if (found.empty()) refuse("no dataset is an array of images or holds encoded ones");
    if (found.size() > 1) {
      throw InvalidArgument(fmt::format("several datasets of '{}' may be its images: {}",
                                        path_.string(), fmt::join(found, ", ")),
                            "Name one with --image-key.");
    }
    return *open_dataset(file_, found.front());
  }

  [[nodiscard]] std::uint64_t row_elements(const Dataset& dataset) const {
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : std::span(dataset.extents).subspan(1)) {
      if (__builtin_mul_overflow(elements, extent, &elements) || elements > kLargestRow) {
        throw CorruptData(path_, 0, fmt::format("the rows of '{}' are too large", dataset.name));
      }
    }
    return elements;
  }

  /// That the file can hold so many elements, and that the library may be asked for them.
  void check_storage(const Dataset& dataset) const {
    if (dataset.lies_in_other_files()) {
      refuse(fmt::format("the data of '{}' lies in other files", dataset.name));
    }
    if (const auto missing = dataset.missing_filters(); !missing.empty()) {
      refuse(fmt::format("'{}' is stored with filters ({}) that this HDF5 library lacks",
                         dataset.name, fmt::join(missing, ", ")),
             "Store it again with gzip or without a filter, by a program that has this one.");
    }
    if (dataset.layout() == H5D_CHUNKED) check_chunk(dataset);
    std::uint64_t bytes = H5Tget_size(dataset.type);
    if (dataset.type_class() == H5T_VLEN || H5Tis_variable_str(dataset.type) > 0) bytes = 16;
    const auto elements = dataset.elements();
    const std::uint64_t most = dataset.filters().empty()
                                   ? size_
                                   : std::min(size_, UINT64_MAX / kMostUnpacked) * kMostUnpacked;
    if (!elements || __builtin_mul_overflow(bytes, *elements, &bytes) || bytes > most) {
      throw CorruptData(path_, 0,
                        fmt::format("'{}' is larger than the file can hold", dataset.name));
    }
  }

  void check_chunk(const Dataset& dataset) const {
    std::array<hsize_t, H5S_MAX_RANK> shape{};
    check(H5Pget_chunk(dataset.create, H5S_MAX_RANK, shape.data()));
    std::uint64_t size = H5Tget_size(dataset.type);
    for (std::size_t i = 0; i < dataset.extents.size(); ++i) {
      if (__builtin_mul_overflow(size, shape[i], &size) || size > kLargestChunk) {
        refuse(fmt::format("a chunk of '{}' is too large", dataset.name));
      }
    }
  }

  void describe_rows(const Dataset& images, ImageRows& rows) const {
    if (is_various_bytes(images)) return;
    if (!is_array(images)) {
      rows.row_bytes = row_elements(images) * H5Tget_size(images.type);
    } else {
      rows.array = array_of(images);
      rows.row_bytes = rows.array->size_bytes();
    }
    if (rows.row_bytes > kLargestRow)
      refuse(fmt::format("the rows of '{}' are too large", images.name));
    const auto offset = images.filters().empty() ? images.contiguous_offset() : std::nullopt;
    const bool as_wanted = !rows.array || is_stored_as(images.type, rows.array->type);
    if (!offset || !as_wanted || rows.count == 0) return;
    const std::uint64_t size = rows.row_bytes * rows.count;  // fits, by check_storage()
    if (*offset > size_ || size > size_ - *offset) {
      throw CorruptData(path_, *offset,
                        fmt::format("'{}' runs past the end of the file", images.name));
    }
    rows.offset = offset;
  }

  [[nodiscard]] static bool is_stored_as(hid_t type, PixelType wanted) {
    if (wanted == PixelType::kUint8) return true;  // whatever the byte order
    return H5Tequal(type, memory_type(wanted)) > 0;
  }

  [[nodiscard]] PixelArray array_of(const Dataset& images) const {
    const auto extents = std::span(images.extents).subspan(1);
    const auto order = order_of(images);
    // The dtype has no part in what the axes are.
    const SpecGuess guess =
        order ? spec_of(DType::kUint8, *order, extents) : guess_spec(DType::kUint8, extents);
    if (!guess.spec || guess.spec->channels == 2 || guess.spec->channels > 4 ||
        row_elements(images) == 0) {
      refuse(fmt::format("'{}' is an array of {}; images have 1, 3 or 4 channels", images.name,
                         fmt::join(images.extents, " x ")));
    }
    return {pixel_type(images), guess.spec->layout, guess.spec->height, guess.spec->width,
            guess.spec->channels};
  }

  void find_labels(ImageRows& rows, const std::string& given) const {
    if (!given.empty()) {
      rows.labels = labels(without_slash(given), rows.count);
      if (!rows.labels.empty()) return;
      throw InvalidArgument(
          fmt::format("'{}' of '{}' does not have one integer or name for each of the {} images",
                      given, path_.string(), rows.count),
          fmt::format("It has: {}.", fmt::join(dataset_names(file_), ", ")));
    }
    for (const std::string& name : label_names_for(rows.name)) {
      if (group_ + name == rows.name) continue;
      rows.labels = labels(group_ + name, rows.count);
      if (!rows.labels.empty()) return;
      const auto dataset = open_dataset(file_, group_ + name);
      if (dataset && !lists_classes(*dataset)) rows.mismatched_labels = describe(*dataset);
    }
    rows.maybe_labels = other_integers(file_, rows.count);
  }

  /// None if it is not there or not what labels are.
  [[nodiscard]] std::vector<std::string> labels(const std::string& name,
                                                std::uint64_t count) const {
    const auto dataset = open_dataset(file_, name);
    if (!dataset || !may_be_labels(*dataset, count)) return {};
    if (dataset->type_class() == H5T_STRING) return texts(name, count);
    check_storage(*dataset);
    std::vector<std::string> result;
    for (const std::int64_t value : read_numbers(*dataset, count))
      result.push_back(std::to_string(value));
    return result;
  }

  /// Strings; none if there are no such, or not so many.
  [[nodiscard]] std::vector<std::string> texts(const std::string& name,
                                               std::optional<std::uint64_t> count) const {
    const auto dataset = open_dataset(file_, name);
    if (!dataset || dataset->type_class() != H5T_STRING) return {};
    if (dataset->extents.size() != 1 || (count && dataset->extents[0] != *count)) return {};
    check_storage(*dataset);
    // Unpacked, what never was written takes no bytes of the file.
    const std::uint64_t width = H5Tget_size(dataset->type);
    if (!count && dataset->extents[0] > kMostTextBytes / width) {
      refuse(fmt::format("'{}' has too many texts", name));
    }
    return read_texts(*dataset, kLongestText);
  }

  /// Throws CorruptData at the first chunk that cannot be read.
  void locate_damage(const Dataset& images, hid_t type, std::uint64_t first, std::uint64_t count,
                     void* buffer) const {
    if (images.layout() != H5D_CHUNKED) return;
    const std::uint64_t step = rows_per_chunk(images);
    for (std::uint64_t row = first; row < first + count; row += step) {
      try {
        read_rows(images, type, row, std::min(step, first + count - row), buffer);
      } catch (const LibraryFailure& failure) {
        std::vector<hsize_t> corner(images.extents.size(), 0);
        corner[0] = row;
        haddr_t address = HADDR_UNDEF;
        unsigned mask = 0;
        hsize_t size = 0;
        H5Dget_chunk_info_by_coord(images.id, corner.data(), &mask, &address, &size);
        throw CorruptData(path_, address == HADDR_UNDEF ? 0 : address + file_.user_block(),
                          fmt::format("the HDF5 library cannot read '{}' from row {} on: {}",
                                      images.name, row, failure.reason));
      }
    }
  }

  [[nodiscard]] static std::uint64_t rows_per_chunk(const Dataset& images) {
    std::array<hsize_t, H5S_MAX_RANK> shape{};
    check(H5Pget_chunk(images.create, H5S_MAX_RANK, shape.data()));
    return std::max<std::uint64_t>(1, shape[0]);
  }

  /// So many that every chunk is unpacked once, within reasonable memory.
  [[nodiscard]] static std::uint64_t rows_at_once(const Dataset& images, const ImageRows& rows) {
    const std::uint64_t fitting = std::max<std::uint64_t>(1, kReadAtOnce / rows.row_bytes);
    if (images.layout() != H5D_CHUNKED) return fitting;
    const std::uint64_t per_chunk = rows_per_chunk(images);
    if (per_chunk > kLargestChunk / rows.row_bytes) return fitting;
    return fitting < per_chunk ? per_chunk : fitting / per_chunk * per_chunk;
  }

  std::uint64_t size_;
  const std::filesystem::path& path_;
  MemoryFile file_;
  std::string group_;  // of the images, with a slash behind it
};

template <typename Action>
auto with_library(const std::filesystem::path& path, const Action& action) {
  const LibraryLock lock;
  try {
    return action();
  } catch (const LibraryFailure& failure) {
    throw CorruptData(path, 0, fmt::format("the HDF5 library cannot read it: {}", failure.reason));
  }
}

}  // namespace

ImageRows find_images(Bytes file, const std::filesystem::path& path, const std::string& image_name,
                      const std::string& label_name) {
  return with_library(path, [&] { return Finder(file, path).run(image_name, label_name); });
}

void read_rows(Bytes file, const std::filesystem::path& path, const ImageRows& rows,
               const std::function<void(Bytes)>& take) {
  with_library(path, [&] { Finder(file, path).read_all(rows, take); });
}

std::uint64_t check_images(Bytes file, const std::filesystem::path& path) {
  try {
    const ImageRows rows = find_images(file, path, {}, {});
    read_rows(file, path, rows, [](Bytes) {});
    return rows.count;
  } catch (const InvalidArgument& error) {  // several may be meant, and nobody is there to ask
    throw Unsupported(error.what());
  }
}

}  // namespace precache::hdf5
