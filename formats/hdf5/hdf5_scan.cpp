// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_scan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "formats/base/file.hpp"
#include "formats/base/little_endian.hpp"
#include "formats/hdf5/dataset_names.hpp"
#include "formats/hdf5/hdf5_objects.hpp"
#include "formats/index_builder.hpp"
#include "formats/spec_guess.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

// A table takes more memory than smaller rows do, so a file could ask for a multiple of its size.
constexpr std::uint64_t kSmallestRowOfTable = 16;
// The library (1.10) goes through all chunks before one to find it: 0.3 s for these, 8 s for
// 20,000.
constexpr std::uint64_t kMostChunks = 4096;
// What a label's chunk may make the library allocate.
constexpr std::uint64_t kLargestLabelChunk = std::uint64_t{1} << 26;

std::optional<DType> dtype_of(const Dataset& dataset) {
  if (H5Tequal(dataset.type, H5T_STD_U8LE) > 0 || H5Tequal(dataset.type, H5T_STD_U8BE) > 0) {
    return DType::kUint8;
  }
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    if (H5Tequal(dataset.type, image_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

bool is_image_array(const Dataset& dataset) {
  const H5T_class_t kind = dataset.type_class();
  return (dataset.extents.size() == 3 || dataset.extents.size() == 4) &&
         (kind == H5T_INTEGER || kind == H5T_FLOAT);
}

/// A column that a mapping reads, or the values that the library read; neither if there are none.
struct Labels {
  Column column;
  std::vector<std::int64_t> values;
};

/// Where the rows of the images lie: one after another from `base`, or in chunks of some.
struct Rows {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  // of one
  std::uint64_t base = 0;
  std::uint64_t rows_per_chunk = 0;
  std::vector<std::uint64_t> chunks;  // empty if the rows are contiguous

  [[nodiscard]] std::uint64_t offset(std::uint64_t row) const {
    if (chunks.empty()) return base + row * bytes;
    return chunks[row / rows_per_chunk] + row % rows_per_chunk * bytes;
  }
};

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::filesystem::path& path)
      : bytes_(file), path_(path), file_(file) {}

  ShardIndex run() {
    const Dataset images = find_images();
    const auto slash = images.name.rfind('/');
    if (slash != std::string::npos) group_ = images.name.substr(0, slash + 1);
    SpecGuess guess = guess_image(images);
    const Rows rows = find_rows(images);
    const Labels labels = find_labels(images, rows);
    const Column keys = find_keys(rows.count);
    ShardIndex index;
    if (rows.count == 0 || (guess.spec && rows.chunks.empty() && labels.values.empty())) {
      index.format = Format::kHdf5;
      index.bytes = bytes_.size();
      index.samples = rows.count;
      if (rows.count != 0) index.columns.image = {rows.base, rows.bytes, {}};
    } else {
      index = make_table(rows, guess, labels, keys);
    }
    if (index.places.empty() && rows.count != 0) {
      index.columns.image.type = name(guess.spec->dtype);
      index.columns.label = labels.column;
      index.columns.key = keys;
    }
    index.spec = guess.spec;
    index.obstacle = std::move(guess.obstacle);
    index.classes = find_classes();
    return index;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Unsupported(fmt::format("'{}' cannot be read by a mapping: {}", path_.string(), reason));
  }

  [[nodiscard]] Dataset find_images() const {
    std::string reason = "it has no dataset of numbers with three or four axes";
    for (const char* const name : kImageNames) {
      auto dataset = open_dataset(file_, name);
      if (!dataset) continue;
      if (is_image_array(*dataset)) return std::move(*dataset);
      reason = fmt::format("'{}' holds {} in {} axes, no images", name, dataset->type_text(),
                           dataset->extents.size());
    }
    std::vector<std::string> found;
    for (const std::string& name : dataset_names(file_)) {
      const auto dataset = open_dataset(file_, name);
      if (dataset && is_image_array(*dataset)) found.push_back(name);
    }
    if (found.empty()) refuse(reason);
    if (found.size() > 1) {
      refuse(fmt::format("several datasets may be its images: {}", fmt::join(found, ", ")));
    }
    return *open_dataset(file_, found.front());
  }

  [[nodiscard]] SpecGuess guess_image(const Dataset& images) const {
    if (H5Tget_order(images.type) == H5T_ORDER_BE && H5Tget_size(images.type) > 1) {
      refuse(fmt::format("'{}' is of {}", images.name, images.type_text()));
    }
    const auto dtype = dtype_of(images);
    if (!dtype) {
      return {std::nullopt, fmt::format("its samples are arrays of {}", images.type_text())};
    }
    const auto extents = std::span(images.extents).subspan(1);
    const auto order = order_of(images);
    return order ? spec_of(*dtype, *order, extents) : guess_spec(*dtype, extents);
  }

  [[nodiscard]] Rows find_rows(const Dataset& images) const {
    Rows rows{.count = images.extents[0], .bytes = H5Tget_size(images.type), .chunks = {}};
    for (const std::uint64_t extent : std::span(images.extents).subspan(1)) {
      if (__builtin_mul_overflow(rows.bytes, extent, &rows.bytes)) {
        throw CorruptData(path_, 0, "the extents of its images exceed 64 bits");
      }
    }
    if (const auto filters = images.filters(); !filters.empty()) {
      refuse(
          fmt::format("'{}' is stored with filters ({})", images.name, fmt::join(filters, ", ")));
    }
    if (images.lies_in_other_files()) {
      refuse(fmt::format("the data of '{}' lies in other files", images.name));
    }
    if (images.layout() == H5D_COMPACT) {
      refuse(fmt::format("'{}' is stored within its header", images.name));
    }
    if (rows.count == 0 || rows.bytes == 0) return {};
    if (rows.count > bytes_.size() / rows.bytes) {
      throw CorruptData(path_, 0, fmt::format("'{}' is larger than the file", images.name));
    }
    if (images.layout() == H5D_CHUNKED) {
      find_chunks(images, rows);
    } else {
      rows.base = offset_of(images, rows.count * rows.bytes);
    }
    return rows;
  }

  /// Of what lies in one piece.
  [[nodiscard]] std::uint64_t offset_of(const Dataset& dataset, std::uint64_t size) const {
    const auto offset = dataset.contiguous_offset();
    if (!offset) refuse(fmt::format("'{}' has no place in the file yet", dataset.name));
    check_range(dataset, *offset, size);
    return *offset;
  }

  void check_range(const Dataset& dataset, std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      throw CorruptData(path_, offset,
                        fmt::format("'{}' runs past the end of the file", dataset.name));
    }
  }

  void find_chunks(const Dataset& images, Rows& rows) const {
    std::array<hsize_t, 4> shape{};
    const auto rank = static_cast<int>(images.extents.size());
    check(H5Pget_chunk(images.create, rank, shape.data()));
    if (!std::ranges::equal(std::span(shape).subspan(1, images.extents.size() - 1),
                            std::span(images.extents).subspan(1))) {
      refuse(fmt::format("rows of '{}' are split over chunks", images.name));
    }
    if (shape[0] == 0) throw CorruptData(path_, 0, "a chunk has no rows");
    rows.rows_per_chunk = shape[0];
    const std::uint64_t count = (rows.count - 1) / shape[0] + 1;
    if (count > kMostChunks) {
      refuse(fmt::format("'{}' has more than {} chunks", images.name, kMostChunks));
    }
    const Id space(H5Dget_space(images.id), H5Sclose);
    hsize_t stored = 0;
    check(H5Dget_num_chunks(images.id, space, &stored));
    if (stored != count) {
      refuse(fmt::format("some chunks of '{}' have no place in the file yet", images.name));
    }
    rows.chunks.assign(count, HADDR_UNDEF);
    const std::uint64_t user_block = file_.user_block();
    for (std::uint64_t i = 0; i < count; ++i) {
      std::array<hsize_t, 4> first{};
      unsigned filter_mask = 0;
      haddr_t address = 0;
      hsize_t size = 0;
      check(H5Dget_chunk_info(images.id, space, i, first.data(), &filter_mask, &address, &size));
      if (first[0] >= rows.count) throw CorruptData(path_, 0, "a chunk lies outside its dataset");
      const std::uint64_t used = std::min<std::uint64_t>(shape[0], rows.count - first[0]);
      address +=
          user_block;  // which the library (1.10) does not count here, unlike in H5Dget_offset
      check_range(images, address, used * rows.bytes);
      rows.chunks[first[0] / shape[0]] = address;
    }
    if (std::ranges::find(rows.chunks, HADDR_UNDEF) != rows.chunks.end()) {
      throw CorruptData(path_, 0, fmt::format("a chunk of '{}' stands twice", images.name));
    }
  }

  [[nodiscard]] Labels find_labels(const Dataset& images, const Rows& rows) const {
    const std::uint64_t count = rows.count;
    for (const char* const name : kLabelNames) {
      if (group_ + name == images.name) continue;
      const auto dataset = open_dataset(file_, group_ + name);
      if (!dataset || dataset->type_class() != H5T_INTEGER || dataset->elements() != count) {
        continue;
      }
      if (count == 0) return {};
      if (H5Tequal(dataset->type, H5T_STD_I64LE) > 0 && dataset->contiguous_offset()) {
        // One count of rows fits the file, but eight bytes for each may not.
        const std::uint64_t size = count > UINT64_MAX / 8 ? UINT64_MAX : count * 8;
        return {{offset_of(*dataset, size), 8, "int64"}, {}};
      }
      check_row_of_table(rows);
      return {{}, read_labels(*dataset, count)};
    }
    return {};
  }

  [[nodiscard]] std::vector<std::int64_t> read_labels(const Dataset& dataset,
                                                      std::uint64_t count) const {
    if (dataset.lies_in_other_files()) {
      refuse(fmt::format("the data of '{}' lies in other files", dataset.name));
    }
    if (H5Pall_filters_avail(dataset.create) <= 0) {
      refuse(fmt::format("'{}' is stored with filters ({}) that this HDF5 library lacks",
                         dataset.name, fmt::join(dataset.filters(), ", ")));
    }
    if (dataset.layout() == H5D_CHUNKED) {
      std::array<hsize_t, H5S_MAX_RANK> shape{};
      check(H5Pget_chunk(dataset.create, H5S_MAX_RANK, shape.data()));
      std::uint64_t size = H5Tget_size(dataset.type);
      for (std::size_t i = 0; i < dataset.extents.size(); ++i) {
        if (__builtin_mul_overflow(size, shape[i], &size) || size > kLargestLabelChunk) {
          refuse(fmt::format("a chunk of '{}' is too large", dataset.name));
        }
      }
    }
    std::vector<std::int64_t> values(count);
    check(H5Dread(dataset.id, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
    return values;
  }

  [[nodiscard]] Column find_keys(std::uint64_t count) const {
    const auto dataset = open_dataset(file_, group_ + "keys");
    if (count == 0 || !dataset || !is_fixed_string(*dataset) || dataset->extents[0] != count ||
        H5Tget_strpad(dataset->type) == H5T_STR_SPACEPAD || !dataset->contiguous_offset()) {
      return {};
    }
    const std::uint64_t width = H5Tget_size(dataset->type);
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(count, width, &size)) size = UINT64_MAX;
    return {offset_of(*dataset, size), width, "utf8"};
  }

  [[nodiscard]] static bool is_fixed_string(const Dataset& dataset) {
    return dataset.type_class() == H5T_STRING && H5Tis_variable_str(dataset.type) == 0 &&
           dataset.extents.size() == 1;
  }

  [[nodiscard]] std::vector<std::string> find_classes() const {
    for (const char* const name : kClassNames) {
      const auto dataset = open_dataset(file_, group_ + name);
      if (!dataset || !is_fixed_string(*dataset) || !dataset->contiguous_offset()) continue;
      const std::uint64_t width = H5Tget_size(dataset->type);
      std::uint64_t size = 0;
      if (__builtin_mul_overflow(dataset->extents[0], width, &size)) size = UINT64_MAX;
      std::string_view texts = as_text(bytes_.subspan(offset_of(*dataset, size), size));
      std::vector<std::string> classes;
      for (; !texts.empty(); texts.remove_prefix(width)) {
        std::string_view text = texts.substr(0, width);
        text = text.substr(0, text.find('\0'));
        if (H5Tget_strpad(dataset->type) == H5T_STR_SPACEPAD) {
          text = text.substr(0, text.find_last_not_of(' ') + 1);
        }
        classes.emplace_back(text);
      }
      return classes;
    }
    return {};
  }

  void check_row_of_table(const Rows& rows) const {
    if (rows.bytes < kSmallestRowOfTable) refuse("its rows are too small for images");
  }

  /// For rows that need one, or whose labels do.
  [[nodiscard]] ShardIndex make_table(const Rows& rows, const SpecGuess& guess,
                                      const Labels& labels, const Column& keys) const {
    check_row_of_table(rows);
    IndexBuilder builder(Format::kHdf5, bytes_.size(), path_);
    using Kind = ValueSpot::Kind;
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      const std::uint64_t offset = rows.offset(i);
      FoundSample sample{.record = offset,
                         .record_end = offset + rows.bytes,
                         .payload = offset,
                         .payload_bytes = rows.bytes,
                         .spec = guess.spec,
                         .obstacle = guess.obstacle};
      if (!labels.values.empty()) {
        sample.label = labels.values[i];
        sample.label_spot.kind = Kind::kElsewhere;
      } else if (!labels.column.type.empty()) {
        sample.label =
            static_cast<std::int64_t>(little_endian(bytes_.subspan(labels.column.base + i * 8, 8)));
        sample.label_spot = {Kind::kColumn, labels.column.base + i * 8, "int64"};
      }
      if (!keys.type.empty()) {
        const std::uint64_t at = keys.base + i * keys.stride;
        const std::string_view text = as_text(bytes_.subspan(at, keys.stride));
        sample.key = text.substr(0, text.find('\0'));
        sample.key_spot = {Kind::kColumn, at, "utf8"};
      }
      builder.add(sample);
    }
    return std::move(builder).finish();
  }

  std::span<const std::byte> bytes_;
  const std::filesystem::path& path_;
  MemoryFile file_;
  std::string group_;  // of the images, with a slash behind it
};

}  // namespace

ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path) {
  const LibraryLock lock;
  try {
    return Scanner(file, path).run();
  } catch (const LibraryFailure& failure) {
    throw CorruptData(path, 0, fmt::format("the HDF5 library cannot read it: {}", failure.reason));
  }
}

}  // namespace precache::hdf5
