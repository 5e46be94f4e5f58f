// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/shard/framing.hpp"
#include "formats/tar/ustar.hpp"

namespace precache {
namespace {

constexpr std::size_t kNpyHeaderBytes = 128;
// Two zero blocks end an archive.
constexpr std::size_t kEndBytes = 2 * ustar::kBlock;

// By DType. NumPy has no name for bfloat16; only the manifest tells it from uint16.
constexpr std::array kNpyTypes{"|u1", "<f2", "<u2", "<f4"};

// By ValueType.
constexpr std::array kNpyValueTypes{"|u1", "<i4", "<i8", "<f4"};

/// `shape` has the extents with ", " between them, and a comma after a single one.
std::string make_npy_header(std::string_view type, const std::string& shape) {
  const std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  constexpr std::size_t kFixed = 10;  // magic, version 1.0, length of the rest
  const std::size_t rest = kNpyHeaderBytes - kFixed;
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(rest & 0xff);
  header += static_cast<char>(rest >> 8);
  return header + fmt::format("{:<{}}\n", dict, rest - 1);
}

std::string make_npy_header(const TensorSpec& spec) {
  return make_npy_header(kNpyTypes[static_cast<std::size_t>(spec.dtype)],
                         fmt::format("{}", fmt::join(spec.shape(), ", ")));
}

std::string make_npy_header(const NamedColumn& column) {
  return make_npy_header(
      kNpyValueTypes[static_cast<std::size_t>(column.type)],
      fmt::format("{}{}", fmt::join(column.shape, ", "), column.shape.size() == 1 ? "," : ""));
}

/// The size of the blocks of a .npy file with `array_bytes` of values.
std::uint64_t npy_blocks_bytes(std::uint64_t array_bytes) {
  constexpr std::uint64_t kLargestEntry = (std::uint64_t{1} << 33) - 1;  // eleven octal digits
  const std::uint64_t bytes = checked_add(array_bytes, kNpyHeaderBytes);
  if (bytes > kLargestEntry) {
    throw InvalidArgument("a tensor of this size does not fit in a tar entry",
                          "Choose a smaller `size` or another `format`.");
  }
  return round_up(bytes, ustar::kBlock);
}

/// The end of the name of a column's entry.
std::string ending_of(const NamedColumn& column) { return "." + column.name + ".npy"; }

std::size_t longest_ending(const std::vector<NamedColumn>& named) {
  std::size_t longest = ustar::kSuffixBytes;
  for (const NamedColumn& column : named) longest = std::max(longest, ending_of(column).size());
  return longest;
}

/// The size of the pax headers before each entry: 0 if all names fit ustar.
std::size_t pax_bytes_of(const NameLimits& limits, const std::vector<NamedColumn>& named) {
  const std::size_t longest_path = limits.longest_key + longest_ending(named);
  // The limits know only of paths with an ending like that of the image.
  if (limits.all_fit_ustar && (named.empty() || longest_path <= ustar::kNameBytes)) return 0;
  return ustar::kBlock * (1 + ustar::pax_data_blocks(longest_path));
}

/// A record is the entries KEY.npy and KEY.cls, and KEY.NAME.npy for each named column.
/// docs/formats/tar.md has the bytes.
class TarFraming : public Framing {
 public:
  TarFraming(const TensorSpec& spec, const NameLimits& limits,
             const std::vector<NamedColumn>& named)
      : Framing(named),
        dtype_name_(name(spec.dtype)),
        npy_header_(make_npy_header(spec)),
        tensor_bytes_(spec.size_bytes()),
        pax_bytes_(pax_bytes_of(limits, named)),
        cls_offset_(headers_bytes() + npy_blocks_bytes(tensor_bytes_)),
        npy_header_crc_(crc32c::value(std::as_bytes(std::span(npy_header_)))),
        tensor_(tensor_bytes_),
        npy_blocks_(npy_blocks_bytes(tensor_bytes_)) {
    tensor_offset_ = headers_bytes() + kNpyHeaderBytes;
    record_bytes_ = cls_offset_ + headers_bytes() + ustar::kBlock;
    for (const NamedColumn& column : named_) {
      const std::uint64_t blocks = npy_blocks_bytes(column.size_bytes());
      value_entries_.push_back({ending_of(column), make_npy_header(column), record_bytes_,
                                headers_bytes() + blocks, column.size_bytes()});
      record_bytes_ = checked_add(record_bytes_, headers_bytes() + blocks);
    }
  }

  std::uint32_t frame(std::span<std::byte> record, const SampleName& sample,
                      std::uint32_t tensor_crc) const override {
    const auto npy_entry = record.first(cls_offset_);
    const auto npy = npy_entry.subspan(headers_bytes());
    std::memcpy(npy.data(), npy_header_.data(), npy_header_.size());
    const auto padding = npy.subspan(kNpyHeaderBytes + tensor_bytes_);
    std::ranges::fill(padding, std::byte{0});
    const std::uint32_t npy_crc =
        crc32c::extend(tensor_.append(npy_header_crc_, tensor_crc), padding);
    write_headers(npy_entry, sample.key + ".npy", kNpyHeaderBytes + tensor_bytes_, npy_crc);

    const auto cls_entry = record.subspan(cls_offset_, headers_bytes() + ustar::kBlock);
    const auto cls = cls_entry.subspan(headers_bytes());
    const std::string label = fmt::format("{}", sample.label);
    std::ranges::fill(cls, std::byte{0});
    std::memcpy(cls.data(), label.data(), label.size());
    write_headers(cls_entry, sample.key + ".cls", label.size(), crc32c::value(cls));
    write_values(record, sample);

    const std::uint32_t headers_crc = crc32c::value(npy_entry.first(headers_bytes()));
    return crc32c::extend(npy_blocks_.append(headers_crc, npy_crc), record.subspan(cls_offset_));
  }

  Envelope envelope(std::span<const WrittenRecord>, const std::filesystem::path&) const override {
    return {.prologue = {}, .epilogue = std::vector<std::byte>(kEndBytes)};
  }

  ShardColumns columns(std::uint64_t) const override {
    ShardColumns all{.image = {tensor_offset_, record_bytes_, dtype_name_},
                     .label = {cls_offset_ + headers_bytes(), record_bytes_, "decimal"},
                     .key = {0, record_bytes_, pax_bytes_ == 0 ? "ustar" : "pax"}};
    for (std::size_t i = 0; i < named_.size(); ++i) {
      const std::uint64_t base = value_entries_[i].offset + headers_bytes() + kNpyHeaderBytes;
      all.named.push_back({base, record_bytes_, std::string(name(named_[i].type))});
    }
    return all;
  }

  std::uint64_t shard_bytes(std::uint64_t samples) const override {
    return checked_add(checked_mul(samples, record_bytes_), kEndBytes);
  }

 private:
  [[nodiscard]] std::size_t headers_bytes() const { return pax_bytes_ + ustar::kBlock; }

  /// Writes the headers of one entry, with a pax header first if the dataset needs it.
  void write_headers(std::span<std::byte> entry, const std::string& path, std::uint64_t size,
                     std::uint32_t data_crc) const {
    if (pax_bytes_ != 0) ustar::write_pax(entry.first(pax_bytes_), path);
    ustar::write_header(entry.subspan(pax_bytes_, ustar::kBlock), path, size, data_crc);
  }

  /// The entry of a named column.
  struct ValueEntry {
    std::string ending;  // of its name
    std::string npy_header;
    std::uint64_t offset = 0;  // in a record
    std::uint64_t bytes = 0;   // with its headers
    std::uint64_t values_bytes = 0;
  };

  void write_values(std::span<std::byte> record, const SampleName& sample) const {
    std::span<const std::byte> values = sample.values;
    for (const ValueEntry& column : value_entries_) {
      const auto entry = record.subspan(column.offset, column.bytes);
      const auto npy = entry.subspan(headers_bytes());
      std::memcpy(npy.data(), column.npy_header.data(), kNpyHeaderBytes);
      std::ranges::copy(values.first(column.values_bytes), npy.begin() + kNpyHeaderBytes);
      std::ranges::fill(npy.subspan(kNpyHeaderBytes + column.values_bytes), std::byte{0});
      write_headers(entry, sample.key + column.ending, kNpyHeaderBytes + column.values_bytes,
                    crc32c::value(npy));
      values = values.subspan(column.values_bytes);
    }
  }

  std::string dtype_name_;
  std::string npy_header_;
  std::uint64_t tensor_bytes_;
  std::size_t pax_bytes_;     // 0 if all names fit ustar
  std::uint64_t cls_offset_;  // of the second entry in a record
  std::uint32_t npy_header_crc_;
  crc32c::BlockCombiner tensor_;
  crc32c::BlockCombiner npy_blocks_;
  std::vector<ValueEntry> value_entries_;
};

}  // namespace

std::unique_ptr<const Framing> make_tar_framing(const TensorSpec& spec, const NameLimits& limits,
                                                const std::vector<NamedColumn>& named) {
  return std::make_unique<TarFraming>(spec, limits, named);
}

}  // namespace precache
