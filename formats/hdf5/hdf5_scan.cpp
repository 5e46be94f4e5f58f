// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_scan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "formats/bytes/little_endian.hpp"
#include "formats/hdf5/dataset_names.hpp"
#include "formats/hdf5/global_heaps.hpp"
#include "formats/hdf5/hdf5_labels.hpp"
#include "formats/hdf5/hdf5_objects.hpp"
#include "formats/hdf5/hdf5_row_offsets.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/index_builder.hpp"
#include "formats/shard/spec_guess.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

// A table takes more memory than smaller rows do, so a file could ask for a multiple of its size.
constexpr std::uint64_t kSmallestRowOfTable = 16;
// What a label's chunk may make the library allocate.
constexpr std::uint64_t kLargestLabelChunk = std::uint64_t{1} << 26;
constexpr std::size_t kLongestLabel = 256;  // of a name

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
  std::vector<std::string> names;

  [[nodiscard]] bool need_table() const { return !values.empty() || !names.empty(); }
};

/// The samples: rows of an array, or what references in rows lead to.
struct SampleRows {
  std::uint64_t count = 0;
  RowOffsets places;
  std::vector<GlobalHeaps::Extent> files;  // of references only

  [[nodiscard]] GlobalHeaps::Extent payload(std::uint64_t row) const {
    return files.empty() ? GlobalHeaps::Extent{places.offset(row), places.bytes} : files[row];
  }
};

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::filesystem::path& path,
          const SampleKeys& keys)
      : bytes_(file), path_(path), wanted_(keys), file_(file) {}

  ShardIndex run() {
    const Dataset images = wanted_.image.empty() ? find_images() : named_images();
    if (const auto matlab = refuse_matlab(images)) scanned_.refuse(matlab->reason, matlab->hint);
    const auto slash = images.name.rfind('/');
    if (slash != std::string::npos) group_ = images.name.substr(0, slash + 1);
    const bool is_encoded = is_various_bytes(images);
    SpecGuess guess = is_encoded ? SpecGuess{} : guess_image(images);
    const SampleRows rows = is_encoded ? find_encoded(images) : find_array(images);
    const Labels labels = find_labels(images, rows);
    const Column keys = find_keys(rows.count);
    ShardIndex index;
    const RowOffsets& places = rows.places;
    if (rows.count == 0 || (guess.spec && places.chunks.empty() && !labels.need_table())) {
      index.format = Format::kHdf5;
      index.bytes = bytes_.size();
      index.samples = rows.count;
      if (rows.count != 0) index.columns.image = {places.base, places.bytes, {}};
    } else {
      index = make_table(rows, guess, labels, keys);
    }
    if (index.places.empty() && rows.count != 0) {
      index.columns.image.type = name(guess.spec->dtype);
      index.columns.label = labels.column;
      index.columns.key = keys;
      index.columns.crc32c = find_crcs(index);
    }
    if (!is_encoded) {
      index.spec = guess.spec;
      index.obstacle = std::move(guess.obstacle);
    }
    index.classes = find_classes(images);
    const bool has_labels = !labels.column.type.empty() || labels.need_table();
    if (!has_labels && !wanted_.without_labels && rows.count != 0) {
      const std::string others = other_integers(file_, rows.count);
      index.maybe_labels = !mismatched_labels_.empty() ? mismatched_labels_
                           : others.empty()            ? ""
                                                       : others + " may be its labels";
    }
    return index;
  }

 private:
  [[noreturn]] void refuse_name(const std::string& reason) const {
    throw InvalidArgument(fmt::format("'{}' {}", path_.string(), reason),
                          fmt::format("It has: {}.", fmt::join(dataset_names(file_), ", ")));
  }

  [[nodiscard]] Dataset named_images() const {
    auto dataset = open_dataset(file_, without_slash(wanted_.image));
    if (!dataset) refuse_name(fmt::format("has no dataset '{}'", wanted_.image));
    if (!is_image_array(*dataset) && !is_various_bytes(*dataset)) {
      refuse_name(fmt::format("has no images in {}", describe(*dataset)));
    }
    return std::move(*dataset);
  }

  [[nodiscard]] Dataset find_images() const {
    std::string reason = "it has no dataset of numbers with three or four axes";
    for (const char* const name : kImageNames) {
      auto dataset = open_dataset(file_, name);
      if (!dataset) continue;
      if (is_image_array(*dataset) || is_various_bytes(*dataset)) return std::move(*dataset);
      reason = fmt::format("'{}' holds {} in {} axes, no images", name, dataset->type_text(),
                           dataset->extents.size());
    }
    std::vector<std::string> arrays;
    std::vector<std::string> encoded;
    for (const std::string& name : dataset_names(file_)) {
      const auto dataset = open_dataset(file_, name);
      if (dataset && is_image_array(*dataset)) arrays.push_back(name);
      if (dataset && is_various_bytes(*dataset)) encoded.push_back(name);
    }
    const auto& found = arrays.empty() ? encoded : arrays;
    if (found.empty()) scanned_.refuse(reason);
    if (found.size() > 1) {
      scanned_.refuse(
          fmt::format("several datasets may be its images: {}", fmt::join(found, ", ")));
    }
    return *open_dataset(file_, found.front());
  }

  [[nodiscard]] SampleRows find_array(const Dataset& images) const {
    const RowOffsets places = find_rows(scanned_, images, H5Tget_size(images.type));
    return {places.count, places, {}};
  }

  [[nodiscard]] SampleRows find_encoded(const Dataset& images) const {
    if (!file_.has_wide_addresses()) {
      scanned_.refuse(
          fmt::format("'{}' has data of variable length, and addresses of less than "
                      "eight bytes",
                      images.name));
    }
    SampleRows rows;
    rows.places = find_rows(scanned_, images, GlobalHeaps::kReferenceBytes);
    rows.count = rows.places.count;
    GlobalHeaps heaps(bytes_, file_.user_block(), path_);
    rows.files.reserve(rows.count);
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      rows.files.push_back(heaps.follow(rows.places.offset(i)));
    }
    return rows;
  }

  [[nodiscard]] std::string obstacle_of(const GlobalHeaps::Extent& file) const {
    const std::string_view kind = image_file_kind(bytes_.subspan(file.offset, file.bytes));
    return kind.empty() ? "its samples are bytes of various lengths, no images by their first ones"
                        : fmt::format("its samples are {} files", kind);
  }

  [[nodiscard]] SpecGuess guess_image(const Dataset& images) const {
    if (H5Tget_order(images.type) == H5T_ORDER_BE && H5Tget_size(images.type) > 1) {
      scanned_.refuse(fmt::format("'{}' is of {}", images.name, images.type_text()));
    }
    const auto dtype = dtype_of(images);
    if (!dtype) {
      return {std::nullopt, fmt::format("its samples are arrays of {}", images.type_text())};
    }
    const auto extents = std::span(images.extents).subspan(1);
    const auto order = order_of(images);
    return order ? spec_of(*dtype, *order, extents) : guess_spec(*dtype, extents);
  }

  [[nodiscard]] std::vector<std::string> label_datasets(const Dataset& images) const {
    if (!wanted_.label.empty()) return {without_slash(wanted_.label)};
    std::vector<std::string> names;
    for (const std::string& name : label_names_for(images.name)) {
      if (group_ + name != images.name) names.push_back(group_ + name);
    }
    return names;
  }

  [[nodiscard]] Labels find_labels(const Dataset& images, const SampleRows& rows) {
    if (wanted_.without_labels || rows.count == 0) return {};
    for (const std::string& name : label_datasets(images)) {
      const auto dataset = open_dataset(file_, name);
      if (!dataset) continue;
      Labels labels = read_labels(*dataset, rows);
      if (labels.need_table() || !labels.column.type.empty()) return labels;
      if (mismatched_labels_.empty() && !lists_classes(*dataset)) {
        mismatched_labels_ =
            fmt::format("{} does not have one integer or name for each of the {} images in '{}'",
                        describe(*dataset), rows.count, images.name);
      }
    }
    if (wanted_.label.empty()) return {};
    if (mismatched_labels_.empty()) refuse_name(fmt::format("has no dataset '{}'", wanted_.label));
    throw InvalidArgument(fmt::format("'{}': {}", path_.string(), mismatched_labels_),
                          fmt::format("It has: {}.", fmt::join(dataset_names(file_), ", ")));
  }

  /// None if it does not hold one label for each row.
  [[nodiscard]] Labels read_labels(const Dataset& dataset, const SampleRows& rows) const {
    const std::uint64_t count = rows.count;
    if (!may_be_labels(dataset, count)) return {};
    if (H5Tequal(dataset.type, H5T_STD_I64LE) > 0 && dataset.elements() == count &&
        dataset.contiguous_offset()) {
      // One count of rows fits the file, but eight bytes for each may not.
      const std::uint64_t size = count > UINT64_MAX / 8 ? UINT64_MAX : count * 8;
      return {{scanned_.offset_of(dataset, size), 8, "int64"}, {}, {}};
    }
    check_row_of_table(rows);
    check_storage(dataset);
    Labels labels;
    labels.values = read_numbers(dataset, count);
    labels.names = read_texts(dataset, kLongestLabel);
    return labels;
  }

  /// What the library can be asked for within reasonable memory.
  void check_storage(const Dataset& dataset) const {
    if (dataset.lies_in_other_files()) {
      scanned_.refuse(fmt::format("the data of '{}' lies in other files", dataset.name));
    }
    if (const auto missing = dataset.missing_filters(); !missing.empty()) {
      scanned_.refuse(fmt::format("'{}' is stored with filters ({}) that this HDF5 library lacks",
                                  dataset.name, fmt::join(missing, ", ")));
    }
    if (dataset.layout() == H5D_CHUNKED) {
      std::array<hsize_t, H5S_MAX_RANK> shape{};
      check(H5Pget_chunk(dataset.create, H5S_MAX_RANK, shape.data()));
      std::uint64_t size = H5Tget_size(dataset.type);
      for (std::size_t i = 0; i < dataset.extents.size(); ++i) {
        if (__builtin_mul_overflow(size, shape[i], &size) || size > kLargestLabelChunk) {
          scanned_.refuse(fmt::format("a chunk of '{}' is too large", dataset.name));
        }
      }
    }
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
    return {scanned_.offset_of(*dataset, size), width, "utf8"};
  }

  /// Those that a file of ours has.
  [[nodiscard]] Column find_crcs(const ShardIndex& index) const {
    const auto dataset = open_dataset(file_, group_ + kCrcName);
    const ShardColumns& columns = index.columns;
    if (!dataset || columns.label.type.empty() || columns.key.type.empty() ||
        dataset->extents != std::vector<std::uint64_t>{index.samples} ||
        H5Tequal(dataset->type, H5T_STD_U32LE) <= 0 || !dataset->contiguous_offset()) {
      return {};
    }
    // The labels of as many samples lie in the file, so this cannot overflow.
    return {scanned_.offset_of(*dataset, index.samples * 4), 4, "uint32"};
  }

  [[nodiscard]] static bool is_fixed_string(const Dataset& dataset) {
    return dataset.type_class() == H5T_STRING && H5Tis_variable_str(dataset.type) == 0 &&
           dataset.extents.size() == 1;
  }

  [[nodiscard]] std::vector<std::string> find_classes(const Dataset& images) const {
    auto names = class_names_of(file_, group_, images.name, bytes_.size());
    if (!names.empty()) return names;
    for (const char* const name : kClassNames) {
      const auto dataset = open_dataset(file_, group_ + name);
      if (!dataset || !is_fixed_string(*dataset) || !dataset->contiguous_offset()) continue;
      const std::uint64_t width = H5Tget_size(dataset->type);
      std::uint64_t size = 0;
      if (__builtin_mul_overflow(dataset->extents[0], width, &size)) size = UINT64_MAX;
      return cut_texts(dataset->type,
                       as_text(bytes_.subspan(scanned_.offset_of(*dataset, size), size)));
    }
    return {};
  }

  void check_row_of_table(const SampleRows& rows) const {
    if (rows.places.bytes < kSmallestRowOfTable)
      scanned_.refuse("its rows are too small for images");
  }

  /// For rows that need one, or whose labels do.
  [[nodiscard]] ShardIndex make_table(const SampleRows& rows, const SpecGuess& guess,
                                      const Labels& labels, const Column& keys) const {
    check_row_of_table(rows);
    IndexBuilder builder(Format::kHdf5, bytes_.size(), path_);
    using Kind = ValueLocation::Kind;
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      const auto [offset, size] = rows.payload(i);
      FoundSample sample{.record = offset,
                         .record_end = offset + size,
                         .payload = offset,
                         .payload_bytes = size,
                         .spec = guess.spec,
                         .obstacle = guess.obstacle};
      if (!rows.files.empty() && i == 0) sample.obstacle = obstacle_of(rows.files[i]);
      if (!labels.values.empty()) {
        sample.label = labels.values[i];
        sample.label_spot.kind = Kind::kElsewhere;
      } else if (!labels.column.type.empty()) {
        sample.label =
            static_cast<std::int64_t>(little_endian(bytes_.subspan(labels.column.base + i * 8, 8)));
        sample.label_spot = {Kind::kColumn, labels.column.base + i * 8, "int64"};
      } else if (!labels.names.empty()) {
        sample.label_name = labels.names[i];
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
  const SampleKeys& wanted_;
  MemoryFile file_;
  ScannedFile scanned_{bytes_, path_, file_};
  std::string group_;  // of the images, with a slash behind it
  std::string mismatched_labels_;
};

}  // namespace

ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                const SampleKeys& keys) {
  const LibraryLock lock;
  try {
    return Scanner(file, path, keys).run();
  } catch (const LibraryFailure& failure) {
    throw CorruptData(path, 0, fmt::format("the HDF5 library cannot read it: {}", failure.reason));
  }
}

}  // namespace precache::hdf5
