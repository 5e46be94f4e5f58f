// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/column_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/bytes/varint.hpp"
#include "formats/os/file.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/ustar.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kInt64Bytes = 8;
constexpr std::uint64_t kDecimalBytes = 64;  // enough for leading zeros
constexpr std::uint64_t kCrcBytes = 4;

std::optional<std::int64_t> read_decimal(Bytes bytes) {
  const std::string_view text = as_text(bytes.first(std::min(bytes.size(), kDecimalBytes)));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // White space, as other tools end a text file with a newline.
  const bool whole =
      end == text.data() + text.size() || *end == '\0' || *end == '\n' || *end == ' ';
  return error == std::errc{} && whole ? std::optional(value) : std::nullopt;
}

std::string without_extension(std::string path) {
  const std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0
  path.resize(std::min(path.find('.', name), path.size()));
  return path;
}

}  // namespace

ColumnValues::ColumnValues(const ShardIndex& index, const std::string& path)
    : index_(&index),
      path_(&path),
      tensor_bytes_(index.spec ? index.spec->size_bytes() : 0),
      label_(type_of(index.columns->label)),
      key_(type_of(index.columns->key)),
      crc32c_(type_of(index.columns->crc32c)) {
  if (!index.places.empty() || index.samples == 0) return;
  // A column without a type would count as absent and not be checked, but be read all the same.
  if (!index.spec || index.columns->image.type != name(index.spec->dtype)) {
    throw CorruptData(
        *path_, 0,
        fmt::format("the image column has the type '{}', but {}", index.columns->image.type,
                    index.spec
                        ? fmt::format("its tensors have the type '{}'", name(index.spec->dtype))
                        : "the shard has no tensor spec"));
  }
  check_fits(index.columns->image, tensor_bytes_);
  check_fits(index.columns->label, label_ == Type::kInt64 ? kInt64Bytes : 1);
  check_fits(index.columns->key, key_ == Type::kUstar || key_ == Type::kPax ? ustar::kBlock
                                 : key_ == Type::kUtf8 ? index.columns->key.stride
                                                       : 1);
  check_fits(index.columns->crc32c, kCrcBytes);
  check_named();
}

void ColumnValues::check_named() const {
  const std::vector<Column>& places = index_->columns->named;
  const std::size_t count = index_->named ? index_->named->size() : 0;
  if (places.size() != count) {
    throw CorruptData(*path_, 0,
                      fmt::format("the split lists {} named columns, but the shard has {}", count,
                                  places.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const NamedColumn& column = (*index_->named)[i];
    if (places[i].type != name(column.type)) {
      throw CorruptData(*path_, places[i].base,
                        fmt::format("the column '{}' has the type '{}', not {}", column.name,
                                    places[i].type, name(column.type)));
    }
    check_fits(places[i], column.size_bytes());
  }
}

ColumnValues::Type ColumnValues::type_of(const Column& column) const {
  static constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"", Type::kNone},       {"decimal", Type::kDecimal}, {"varint", Type::kVarint},
      {"int64", Type::kInt64}, {"ustar", Type::kUstar},     {"pax", Type::kPax},
      {"bytes", Type::kBytes}, {"utf8", Type::kUtf8},       {"uint32", Type::kUint32}};
  for (const auto& [known, type] : kTypes) {
    if (column.type == known) return type;
  }
  throw CorruptData(*path_, 0, fmt::format("'{}' is not a known column type", column.type));
}

void ColumnValues::check_fits(const Column& column, std::uint64_t bytes) const {
  if (column.type.empty()) return;
  // This also means that a shard has no more records than bytes, whatever its manifest says.
  const bool overlap = index_->samples > 1 && column.stride < std::max<std::uint64_t>(bytes, 1);
  if (overlap || index_->bytes > INT64_MAX) {
    throw CorruptData(*path_, column.base,
                      fmt::format("records with a stride of {} bytes overlap", column.stride));
  }
  std::uint64_t last = 0;
  std::uint64_t end = 0;
  if (__builtin_mul_overflow(index_->samples - 1, column.stride, &last) ||
      __builtin_add_overflow(last, column.base, &last) ||
      __builtin_add_overflow(last, bytes, &end) || end > index_->bytes) {
    throw CorruptData(
        *path_, column.base,
        fmt::format("a column of {} records runs past the end of the shard of {} bytes",
                    index_->samples, index_->bytes));
  }
}

ColumnValues::Extent ColumnValues::payload(std::uint64_t i) const {
  if (!index_->places.empty()) {
    return {index_->places[i].payload, index_->places[i].payload_bytes};
  }
  return {at(index_->columns->image, i), tensor_bytes_};
}

Bytes ColumnValues::rest(Bytes file, std::uint64_t offset) const {
  if (offset > file.size()) throw CorruptData(*path_, offset, "the file ends too early");
  return file.subspan(offset);
}

std::int64_t ColumnValues::label(Bytes file, std::uint64_t i) const {
  if (!index_->places.empty()) return index_->places[i].label;
  if (label_ == Type::kNone) return -1;
  const std::uint64_t offset = at(index_->columns->label, i);
  const Bytes bytes = rest(file, offset);
  switch (label_) {
    case Type::kInt64:
      if (bytes.size() >= kInt64Bytes) {
        return static_cast<std::int64_t>(little_endian(bytes.first(kInt64Bytes)));
      }
      break;
    case Type::kVarint:
      if (const auto varint = read_varint(bytes)) return static_cast<std::int64_t>(varint->value);
      break;
    case Type::kDecimal:
      if (const auto value = read_decimal(bytes)) return *value;
      break;
    default:
      break;
  }
  throw CorruptData(*path_, offset, "there is no label");
}

std::string ColumnValues::key(Bytes file, std::uint64_t i) const {
  if (!index_->places.empty()) {
    return index_->keys.substr(index_->places[i].key_begin, index_->places[i].key_bytes);
  }
  if (key_ == Type::kNone) return {};
  const Column& column = index_->columns->key;
  const std::uint64_t offset = at(column, i);
  const Bytes bytes = rest(file, offset);
  switch (key_) {
    case Type::kUstar:
    case Type::kPax:
      if (tar::EntryCursor cursor(file, *path_, offset); const auto entry = cursor.next()) {
        return without_extension(std::string(entry->name));  // borrowed from the cursor
      }
      break;
    case Type::kBytes:
      if (const auto length = read_varint(bytes);
          length && length->value <= bytes.size() - length->bytes) {
        return std::string(as_text(bytes.subspan(length->bytes, length->value)));
      }
      break;
    case Type::kUtf8:
      if (bytes.size() >= column.stride) {
        const std::string_view text = as_text(bytes.first(column.stride));
        return std::string(text.substr(0, text.find('\0')));
      }
      break;
    default:
      break;
  }
  throw CorruptData(*path_, offset, "there is no key");
}

Bytes ColumnValues::named(Bytes file, std::size_t column, std::uint64_t i) const {
  const std::uint64_t bytes = (*index_->named)[column].size_bytes();
  const std::uint64_t offset = at(index_->columns->named[column], i);
  const Bytes values = rest(file, offset);
  if (values.size() < bytes) throw CorruptData(*path_, offset, "the file ends too early");
  return values.first(bytes);
}

void ColumnValues::verify(Bytes file, std::uint64_t i) const {
  const bool has_table = !index_->places.empty();
  if (index_->format == Format::kTfrecord) {
    // There are no bytes before, between or after TFRecords.
    const std::uint64_t record =
        has_table ? index_->places[i].record : i * index_->columns->image.stride;
    verify_tfrecord(file, record, i);
  } else if (index_->format == Format::kTar) {
    const std::uint64_t image = payload(i).offset;
    if (has_table) {
      const bool is_last = i + 1 == index_->samples;
      const std::uint64_t end = is_last ? file.size() : index_->places[i + 1].record;
      return verify_entries(file, index_->places[i].record, end, image, i);
    }
    const std::uint64_t label = label_ == Type::kDecimal ? at(index_->columns->label, i) : image;
    // In third-party archives the label may come before the image, whose header has the key.
    const std::uint64_t key = at(index_->columns->key, i);
    const std::uint64_t begin = label < key ? label - ustar::kBlock : key;
    const std::uint64_t stride = index_->columns->image.stride;
    const std::uint64_t end =
        stride < file.size() - std::min(begin, file.size()) ? begin + stride : file.size();
    verify_entries(file, begin, end, std::max(image, label), i);
  } else if (crc32c_ == Type::kUint32 && !has_table) {
    verify_row(file, i);
  }
}

void ColumnValues::verify_tfrecord(Bytes file, std::uint64_t offset, std::uint64_t i) const {
  if (offset >= file.size()) throw CorruptData(*path_, offset, "the file ends too early");
  const auto record = tfrecord::RecordCursor(file, *path_, offset).next();  // checks the length
  if (!record || !tfrecord::has_right_crc(*record, file)) {
    throw CorruptData(*path_, offset + tfrecord::kLengthBytes,
                      fmt::format("record {} has a wrong CRC", i));
  }
}

void ColumnValues::verify_entries(Bytes file, std::uint64_t begin, std::uint64_t end,
                                  std::uint64_t last, std::uint64_t i) const {
  if (begin > file.size()) throw CorruptData(*path_, begin, "the file ends too early");
  tar::EntryCursor cursor(file, *path_, begin);
  bool has_last = false;
  std::uint64_t next = begin;
  while (next < end) {
    const auto entry = cursor.next();  // throws if a checksum is wrong
    if (!entry) break;
    if (!tar::has_right_crc(*entry, file)) {
      throw CorruptData(*path_, entry->data, fmt::format("record {} has a wrong CRC", i));
    }
    // An empty file starts and ends at the same byte.
    has_last = has_last || (entry->data <= last && last <= entry->end);
    next = entry->end;
  }
  if (!has_last) throw CorruptData(*path_, next, fmt::format("record {} ends too early", i));
}

void ColumnValues::verify_row(Bytes file, std::uint64_t i) const {
  const auto bytes = [&](const Column& column, std::uint64_t size) {
    const Bytes value = rest(file, at(column, i));
    if (value.size() < size) throw CorruptData(*path_, at(column, i), "the file ends too early");
    return value.first(size);
  };
  const ShardColumns& columns = *index_->columns;
  std::uint32_t crc = crc32c::value(bytes(columns.image, tensor_bytes_));
  crc = crc32c::extend(crc, bytes(columns.label, kInt64Bytes));
  crc = crc32c::extend(crc, bytes(columns.key, columns.key.stride));
  for (std::size_t c = 0; c < columns.named.size(); ++c) {
    crc = crc32c::extend(crc, named(file, c, i));
  }
  if (crc != little_endian(bytes(columns.crc32c, kCrcBytes))) {
    throw CorruptData(*path_, at(columns.image, i), fmt::format("record {} has a wrong CRC", i));
  }
}

}  // namespace precache
