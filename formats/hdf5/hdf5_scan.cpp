// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/hdf5_scan.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "formats/bytes/little_endian.hpp"
#include "formats/hdf5/dataset_names.hpp"
#include "formats/hdf5/global_heaps.hpp"
#include "formats/hdf5/hdf5_finder.hpp"
#include "formats/hdf5/hdf5_row_offsets.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/index_builder.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

std::optional<DType> dtype_of(const Dataset& dataset) {
  if (H5Tequal(dataset.type, H5T_STD_U8LE) > 0 || H5Tequal(dataset.type, H5T_STD_U8BE) > 0) {
    return DType::kUint8;
  }
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    if (H5Tequal(dataset.type, image_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

/// The samples: rows of an array, or what references in rows lead to.
struct SampleRows {
  RowOffsets places;
  std::vector<GlobalHeaps::Extent> files;  // of references only

  [[nodiscard]] GlobalHeaps::Extent payload(std::uint64_t row) const {
    return files.empty() ? GlobalHeaps::Extent{places.offset(row), places.bytes} : files[row];
  }
};

/// Makes the index of what a Finder found.
class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::filesystem::path& path,
          const SampleKeys& keys)
      : bytes_(file), finder_(file, path, keys) {}

  ShardIndex run() {
    const bool is_encoded = finder_.kind() == Finder::Kind::kItems;
    SpecGuess guess = is_encoded ? SpecGuess{} : guess_image();
    const SampleRows rows = is_encoded ? find_encoded() : find_array();
    const std::uint64_t count = rows.places.count;
    const FoundLabels labels = count != 0 ? finder_.find_labels() : FoundLabels{};
    const Column keys = count != 0 ? key_column() : Column{};
    ShardIndex index;
    const bool needs_table = !guess.spec || !rows.places.chunks.empty() ||
                             !labels.numbers.empty() || !labels.names.empty();
    if (count != 0 && needs_table) {
      index = make_table(rows, guess, labels, keys);
    } else {
      index.format = Format::kHdf5;
      index.bytes = bytes_.size();
      index.samples = count;
      if (count != 0) index.columns.image = {rows.places.base, rows.places.bytes, {}};
    }
    if (index.places.empty() && count != 0) {
      index.columns.image.type = name(guess.spec->dtype);
      index.columns.label = labels.column;
      index.columns.key = keys;
      index.columns.crc32c = find_crcs(index);
    }
    if (!is_encoded) {
      index.spec = guess.spec;
      index.obstacle = std::move(guess.obstacle);
    }
    index.classes = finder_.find_classes();
    if (labels.empty() && count != 0) index.maybe_labels = finder_.maybe_labels();
    return index;
  }

 private:
  [[nodiscard]] const Dataset& images() const { return finder_.images(); }
  [[nodiscard]] const MemoryFile& file() const { return finder_.file(); }

  [[nodiscard]] SpecGuess guess_image() const {
    if (finder_.kind() == Finder::Kind::kFixedRows) {
      refuse_mapping(file(),
                     fmt::format("'{}' holds image files in rows of one length", images().name));
    }
    if (H5Tget_order(images().type) == H5T_ORDER_BE && H5Tget_size(images().type) > 1) {
      refuse_mapping(file(), fmt::format("'{}' is of {}", images().name, images().type_name()));
    }
    if (const auto dtype = dtype_of(images())) return finder_.guess_axes(*dtype);
    return {std::nullopt, fmt::format("its samples are arrays of {}", images().type_name())};
  }

  [[nodiscard]] SampleRows find_array() const {
    return {find_rows(file(), images(), H5Tget_size(images().type)), {}};
  }

  [[nodiscard]] SampleRows find_encoded() const {
    if (!file().has_wide_addresses()) {
      refuse_mapping(file(), fmt::format("'{}' has data of variable length, and addresses of less "
                                         "than eight bytes",
                                         images().name));
    }
    SampleRows rows{find_rows(file(), images(), GlobalHeaps::kReferenceBytes), {}};
    GlobalHeaps heaps(bytes_, file().user_block(), file().path());
    rows.files.reserve(rows.places.count);
    for (std::uint64_t i = 0; i < rows.places.count; ++i) {
      rows.files.push_back(heaps.follow(rows.places.offset(i)));
    }
    return rows;
  }

  [[nodiscard]] std::string obstacle_of(const GlobalHeaps::Extent& item) const {
    const std::string_view kind = image_file_kind(bytes_.subspan(item.offset, item.bytes));
    return kind.empty() ? "its samples are bytes of various lengths, no images by their first ones"
                        : fmt::format("its samples are {} files", kind);
  }

  /// None if the keys do not lie in one piece, each padded with zeros.
  [[nodiscard]] Column key_column() const {
    const auto dataset = finder_.find_keys();
    if (!dataset || H5Tis_variable_str(dataset->type) != 0 ||
        H5Tget_strpad(dataset->type) == H5T_STR_SPACEPAD) {
      return {};
    }
    const auto offset = dataset->contiguous_offset();
    if (!offset) return {};
    const std::uint64_t width = H5Tget_size(dataset->type);
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(finder_.count(), width, &size)) size = UINT64_MAX;
    file().check_range(*dataset, *offset, size);
    return {*offset, width, "utf8"};
  }

  /// Those that a precache file has.
  [[nodiscard]] Column find_crcs(const ShardIndex& index) const {
    const std::string group = images().name.substr(0, images().name.rfind('/') + 1);
    const auto dataset = open_dataset(file(), group + kCrcName);
    const ShardColumns& columns = index.columns;
    const auto offset = dataset ? dataset->contiguous_offset() : std::nullopt;
    if (!offset || columns.label.type.empty() || columns.key.type.empty() ||
        dataset->extents != std::vector<std::uint64_t>{index.samples} ||
        H5Tequal(dataset->type, H5T_STD_U32LE) <= 0) {
      return {};
    }
    // The labels of as many samples lie in the file, so this cannot overflow.
    file().check_range(*dataset, *offset, index.samples * 4);
    return {*offset, 4, "uint32"};
  }

  /// For rows that need one, or whose labels do.
  [[nodiscard]] ShardIndex make_table(const SampleRows& rows, const SpecGuess& guess,
                                      const FoundLabels& labels, const Column& keys) const {
    finder_.check_row_count();
    IndexBuilder builder(Format::kHdf5, bytes_.size(), file().path());
    using Kind = ValueLocation::Kind;
    for (std::uint64_t i = 0; i < rows.places.count; ++i) {
      const auto [offset, size] = rows.payload(i);
      FoundSample sample{.record = offset,
                         .record_end = offset + size,
                         .payload = offset,
                         .payload_bytes = size,
                         .spec = guess.spec,
                         .obstacle = guess.obstacle};
      if (!rows.files.empty() && i == 0) sample.obstacle = obstacle_of(rows.files[i]);
      if (!labels.numbers.empty()) {
        sample.label = labels.numbers[i];
        sample.label_spot.kind = Kind::kElsewhere;
      } else if (!labels.column.type.empty()) {
        const std::uint64_t at = labels.column.base + i * labels.column.stride;
        sample.label = static_cast<std::int64_t>(little_endian(bytes_.subspan(at, 8)));
        sample.label_spot = {Kind::kColumn, at, "int64"};
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
  Finder finder_;
};

}  // namespace

ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                const SampleKeys& keys) {
  try {
    return with_library(path, [&] { return Scanner(file, path, keys).run(); });
  } catch (const InvalidArgument& error) {
    if (!keys.image.empty() || !keys.label.empty()) throw;
    throw Unsupported(error.what(), error.hint());  // nothing was asked for, so nothing is wrong
  }
}

}  // namespace precache::hdf5
