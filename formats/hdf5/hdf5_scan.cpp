// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "formats/bytes/little_endian.hpp"
#include "formats/hdf5/global_heaps.hpp"
#include "formats/hdf5/hdf5_finder.hpp"
#include "formats/hdf5/hdf5_readers.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/index_builder.hpp"
#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

// To find a chunk, the library (1.10) walks over all chunks before it: 0.3 s for this many, 8 s for
// 20,000.
constexpr std::uint64_t kMostChunks = 4096;

std::optional<DType> dtype_of(const Dataset& dataset) {
  if (H5Tequal(dataset.type, H5T_STD_U8LE) > 0 || H5Tequal(dataset.type, H5T_STD_U8BE) > 0) {
    return DType::kUint8;
  }
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    if (H5Tequal(dataset.type, image_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

std::optional<ValueType> value_type_of(const Dataset& dataset) {
  if (H5Tequal(dataset.type, H5T_STD_U8LE) > 0) return ValueType::kUint8;
  if (H5Tequal(dataset.type, H5T_STD_I32LE) > 0) return ValueType::kInt32;
  if (H5Tequal(dataset.type, H5T_STD_I64LE) > 0) return ValueType::kInt64;
  if (H5Tequal(dataset.type, H5T_IEEE_F32LE) > 0) return ValueType::kFloat32;
  return std::nullopt;
}

/// The names in kColumnsAttribute; none without it.
std::vector<std::string> named_columns_of(const Dataset& crcs) {
  constexpr std::size_t kLongest = 8192;
  if (H5Aexists(crcs.id, kColumnsAttribute) <= 0) return {};
  const Id attribute(H5Aopen(crcs.id, kColumnsAttribute, H5P_DEFAULT), H5Aclose);
  const Id type(H5Aget_type(attribute), H5Tclose);
  const Id space(H5Aget_space(attribute), H5Sclose);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
      H5Tget_size(type) > kLongest || H5Sget_simple_extent_npoints(space) != 1) {
    return {};
  }
  std::string text(H5Tget_size(type), '\0');
  check(H5Aread(attribute, type, text.data()));
  text.resize(std::min(text.find('\0'), text.size()));
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

/// The places of the rows of a dataset: one after another from `base`, or in chunks.
struct RowOffsets {
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

/// A reader maps shards, so it needs each row in one piece and as it is in memory.
template <typename... Args>
[[noreturn]] void refuse_mapping(const MemoryFile& file, fmt::format_string<Args...> reason,
                                 Args&&... args) {
  throw Unsupported(fmt::format("'{}' cannot be mapped: {}", file.path().string(),
                                fmt::format(reason, std::forward<Args>(args)...)));
}

void find_chunks(const MemoryFile& file, const Dataset& images, RowOffsets& rows) {
  const auto shape = images.chunk();
  if (!std::ranges::equal(std::span(shape).subspan(1), std::span(images.extents).subspan(1))) {
    refuse_mapping(file, "rows of '{}' are split over chunks", images.name);
  }
  if (shape[0] == 0) throw CorruptData(file.path(), 0, "a chunk has no rows");
  rows.rows_per_chunk = shape[0];
  const std::uint64_t count = (rows.count - 1) / shape[0] + 1;
  if (count > kMostChunks) {
    refuse_mapping(file, "'{}' has more than {} chunks", images.name, kMostChunks);
  }
  const Id space(H5Dget_space(images.id), H5Sclose);
  hsize_t stored = 0;
  check(H5Dget_num_chunks(images.id, space, &stored));
  if (stored != count) {
    refuse_mapping(file, "some chunks of '{}' are not allocated in the file yet", images.name);
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
      throw CorruptData(file.path(), 0, "a chunk is outside of its dataset");
    const std::uint64_t used = std::min<std::uint64_t>(shape[0], rows.count - first[0]);
    address += user_block;  // the library (1.10) does not include it here, unlike in H5Dget_offset
    file.check_range(images, address, used * rows.bytes);
    rows.chunks[first[0] / shape[0]] = address;
  }
  if (std::ranges::find(rows.chunks, HADDR_UNDEF) != rows.chunks.end()) {
    throw CorruptData(file.path(), 0, fmt::format("a chunk of '{}' is listed twice", images.name));
  }
}

/// Finds rows of elements of `element_bytes` each. Throws Unsupported for storage that a mapping
/// cannot read, and CorruptData.
RowOffsets find_rows(const MemoryFile& file, const Dataset& images, std::uint64_t element_bytes) {
  RowOffsets rows{.count = images.extents[0], .chunks = {}};
  const auto elements = images.row_elements();
  if (!elements || __builtin_mul_overflow(element_bytes, *elements, &rows.bytes)) {
    throw CorruptData(file.path(), 0, "the size of its images does not fit in 64 bits");
  }
  if (const auto filters = images.filters(); !filters.empty()) {
    refuse_mapping(file, "'{}' is stored with filters ({})", images.name, fmt::join(filters, ", "));
  }
  if (images.is_in_other_files()) {
    refuse_mapping(file, "the data of '{}' is in other files", images.name);
  }
  if (images.layout() == H5D_COMPACT) {
    refuse_mapping(file, "'{}' is stored inside its header", images.name);
  }
  if (rows.count == 0 || rows.bytes == 0) return {};
  if (rows.count > file.bytes().size() / rows.bytes) {
    throw CorruptData(file.path(), 0, fmt::format("'{}' is larger than the file", images.name));
  }
  if (images.layout() == H5D_CHUNKED) {
    find_chunks(file, images, rows);
  } else {
    const auto offset = images.contiguous_offset();
    if (!offset) refuse_mapping(file, "'{}' is not allocated in the file yet", images.name);
    file.check_range(images, *offset, rows.count * rows.bytes);
    rows.base = *offset;
  }
  return rows;
}

/// The samples: rows of an array, or the image files that references in rows lead to.
struct SampleRows {
  RowOffsets places;
  std::vector<GlobalHeaps::Extent> files;  // only if rows are references

  [[nodiscard]] GlobalHeaps::Extent payload(std::uint64_t row) const {
    return files.empty() ? GlobalHeaps::Extent{places.offset(row), places.bytes} : files[row];
  }
};

/// Makes an index of the samples that a Finder found.
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
    ShardColumns columns;
    const bool needs_table = !guess.spec || !rows.places.chunks.empty() ||
                             !labels.numbers.empty() || !labels.names.empty();
    if (count != 0 && needs_table) {
      index = make_table(rows, guess, labels, keys);
      columns = *index.columns;  // of rows that turned out to be equal
    } else {
      index.format = Format::kHdf5;
      index.bytes = bytes_.size();
      index.samples = count;
      if (count != 0) columns.image = {rows.places.base, rows.places.bytes, {}};
    }
    if (index.places.empty() && count != 0) {
      columns.image.type = name(guess.spec->dtype);
      columns.label = labels.column;
      columns.key = keys;
      find_crcs(count, columns, index.named);
      index.columns = std::move(columns);
    }
    if (!is_encoded) {
      index.spec = guess.spec;
      index.unsupported_reason = std::move(guess.unsupported_reason);
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
      refuse_mapping(file(), "'{}' holds image files that are padded to one length", images().name);
    }
    if (H5Tget_order(images().type) == H5T_ORDER_BE && H5Tget_size(images().type) > 1) {
      refuse_mapping(file(), "the elements of '{}' are {}", images().name, images().type_name());
    }
    if (const auto dtype = dtype_of(images())) return finder_.guess_axes(*dtype);
    return {std::nullopt, fmt::format("its samples are arrays of {}", images().type_name())};
  }

  [[nodiscard]] SampleRows find_array() const {
    return {find_rows(file(), images(), H5Tget_size(images().type)), {}};
  }

  [[nodiscard]] SampleRows find_encoded() const {
    if (!file().has_wide_addresses()) {
      refuse_mapping(file(),
                     "'{}' has variable-length data, and the file has addresses of "
                     "less than eight bytes",
                     images().name);
    }
    SampleRows rows{find_rows(file(), images(), GlobalHeaps::kReferenceBytes), {}};
    GlobalHeaps heaps(bytes_, file().user_block(), file().path());
    rows.files.reserve(rows.places.count);
    for (std::uint64_t i = 0; i < rows.places.count; ++i) {
      rows.files.push_back(heaps.follow(rows.places.offset(i)));
    }
    return rows;
  }

  [[nodiscard]] std::string unsupported_reason_of(const GlobalHeaps::Extent& item) const {
    const std::string_view kind = image_file_kind(bytes_.subspan(item.offset, item.bytes));
    return kind.empty()
               ? "its samples are bytes of various lengths that do not start like image files"
               : fmt::format("its samples are {} files", kind);
  }

  /// Empty unless the keys are contiguous and padded with zeros.
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

  /// Finds the CRCs, which only precache files have, and the named columns that they cover.
  void find_crcs(std::uint64_t samples, ShardColumns& columns, NamedColumns& named) const {
    const std::string group = images().name.substr(0, images().name.rfind('/') + 1);
    const auto dataset = open_dataset(file(), group + kCrcName);
    const auto offset = dataset ? dataset->contiguous_offset() : std::nullopt;
    if (!offset || columns.label.type.empty() || columns.key.type.empty() ||
        dataset->extents != std::vector<std::uint64_t>{samples} ||
        H5Tequal(dataset->type, H5T_STD_U32LE) <= 0) {
      return;
    }
    // The labels of as many samples are inside the file, so this cannot overflow.
    file().check_range(*dataset, *offset, samples * 4);
    std::vector<NamedColumn> found;
    std::vector<Column> places;
    for (const std::string& name : named_columns_of(*dataset)) {
      const auto values = open_dataset(file(), group + name);
      const auto type = values ? value_type_of(*values) : std::nullopt;
      const auto base = type ? values->contiguous_offset() : std::nullopt;
      if (!base || values->extents.empty() || values->extents.size() > 3 ||
          values->extents[0] != samples) {
        return;
      }
      NamedColumn column{.name = name, .type = *type, .shape = {}, .value_names = {}};
      for (const std::uint64_t extent : std::span(values->extents).subspan(1)) {
        column.shape.push_back(
            static_cast<std::uint32_t>(std::min<std::uint64_t>(extent, UINT32_MAX)));
      }
      found.push_back(std::move(column));
      places.push_back({*base, 0, std::string(precache::name(*type))});
    }
    try {
      validate(found);
    } catch (const InvalidArgument&) {
      return;  // precache did not write it
    }
    for (std::size_t i = 0; i < found.size(); ++i) places[i].stride = found[i].size_bytes();
    columns.crc32c = {*offset, 4, "uint32"};
    columns.named = std::move(places);
    if (!found.empty()) named = std::make_shared<const std::vector<NamedColumn>>(std::move(found));
  }

  /// Makes a table, for rows or labels that no column can describe.
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
                         .unsupported_reason = guess.unsupported_reason};
      if (!rows.files.empty() && i == 0)
        sample.unsupported_reason = unsupported_reason_of(rows.files[i]);
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
