// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/bytes/varint.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/framing.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using tfrecord::kFooterBytes;
using tfrecord::kLengthBytes;

constexpr std::uint64_t kAlignment = 64;

// With all four lengths two bytes wide, a pad feature can have every size between these. Other
// sizes have gaps, where a length's varint grows (docs/formats/tfrecord.md).
constexpr std::uint64_t kSmallestPad = 145;
constexpr std::uint64_t kLargestPad = 16386;

// Protobuf tags: field number << 3 | wire type 2.
constexpr char kField1 = 0x0a;  // Example.features, Features.feature, map key, *List.value
constexpr char kField2 = 0x12;  // map value, Feature.float_list
constexpr char kField3 = 0x1a;  // Feature.int64_list
constexpr char kBytesList = kField1;

/// The lengths around one value of a map entry `name: Feature`, from the outside in.
struct EntryLengths {
  std::uint64_t entry, feature, list;
  int width;  // of each length; 0: as short as possible

  EntryLengths(std::size_t name_bytes, std::uint64_t value_bytes, int length_width)
      : width(length_width) {
    list = 1 + bytes(value_bytes) + value_bytes;
    feature = 1 + bytes(list) + list;
    entry = 2 + name_bytes + 1 + bytes(feature) + feature;
  }
  [[nodiscard]] std::uint64_t bytes(std::uint64_t length) const {
    return static_cast<std::uint64_t>(width == 0 ? varint_bytes(length) : width);
  }
  [[nodiscard]] std::uint64_t total() const { return 1 + bytes(entry) + entry; }
};

/// An entry without its value.
std::string entry_head(std::string_view name, std::uint64_t value_bytes, char list_tag, int width) {
  const EntryLengths lengths(name.size(), value_bytes, width);
  std::string head;
  const auto append = [&](char tag, std::uint64_t length) {
    head += tag;
    put_varint(std::back_inserter(head), length, static_cast<int>(lengths.bytes(length)));
  };
  append(kField1, lengths.entry);
  head += kField1;
  head += static_cast<char>(name.size());
  head += name;
  append(kField2, lengths.feature);
  append(list_tag, lengths.list);
  append(kField1, value_bytes);
  return head;
}

/// A record is a TFRecord that holds a tf.train.Example. docs/formats/tfrecord.md has the bytes.
class TfrecordFraming : public Framing {
 public:
  TfrecordFraming(const TensorSpec& spec, const NameLimits& limits,
                  const std::vector<NamedColumn>& named)
      : Framing(named),
        dtype_name_(name(spec.dtype)),
        tensor_bytes_(spec.size_bytes()),
        label_width_(std::max(varint_bytes(static_cast<std::uint64_t>(limits.smallest_label)),
                              varint_bytes(static_cast<std::uint64_t>(limits.largest_label)))),
        key_width_(EntryLengths(3, limits.longest_key, 1).entry < 0x80 ? 1 : 2),
        tensor_(tensor_bytes_) {
    label_head_ = entry_head("label", static_cast<std::uint64_t>(label_width_), kField3, 0);
    const std::string image_head = entry_head("image", tensor_bytes_, kBytesList, 0);
    std::uint64_t values_total = 0;
    for (const NamedColumn& column : named_) {
      const char list = column.type == ValueType::kFloat32 ? kField2 : kBytesList;
      value_heads_.push_back(entry_head(column.name, column.size_bytes(), list, 0));
      values_total += value_heads_.back().size() + column.size_bytes();
    }
    const std::uint64_t after_image = label_head_.size() +
                                      static_cast<std::uint64_t>(label_width_) + values_total +
                                      EntryLengths(3, limits.longest_key, key_width_).total();
    // The size of `align` depends on the width of the length before it, which depends on everything
    // that follows, including `align`. So the widths are tried in turn.
    const std::size_t align_head = entry_head("align", 0, kBytesList, 0).size();
    std::uint64_t features = 0;
    std::string align;
    int width = 0;
    do {
      ++width;
      const auto before = kLengthBytes + 1 + static_cast<std::uint64_t>(width);
      const std::uint64_t unaligned = before + align_head + image_head.size();
      const std::uint64_t fill = round_up(unaligned, kAlignment) - unaligned;
      align = entry_head("align", fill, kBytesList, 0) + std::string(fill, '\0');
      const std::uint64_t least =
          std::max(align.size() + image_head.size() + tensor_bytes_ + after_image + kSmallestPad,
                   width == 1 ? 0 : std::uint64_t{1} << 7 * (width - 1));
      // Header, tag and length, features and footer together are a multiple of 64.
      features = round_up(before + least + kFooterBytes, kAlignment) - before - kFooterBytes;
    } while (varint_bytes(features) != width);
    const std::uint64_t example = 1 + static_cast<std::uint64_t>(varint_bytes(features)) + features;
    record_bytes_ = kLengthBytes + example + kFooterBytes;
    const std::uint64_t largest_pad = features - align.size() - image_head.size() - tensor_bytes_ -
                                      after_image + limits.longest_key;
    if (example > INT32_MAX) {
      throw InvalidArgument("a tensor of this size does not fit in a tf.train.Example",
                            "Choose a smaller `size` or another `format`.");
    }
    if (largest_pad > kLargestPad) {
      throw InvalidArgument("a key is too long for the tfrecord format",
                            "Choose another `format`.");
    }
    make_head(example, features, align + image_head);
  }

  std::uint32_t frame(std::span<std::byte> record, const SampleName& sample,
                      std::uint32_t tensor_crc) const override {
    char* const begin = reinterpret_cast<char*>(record.data());
    char* const end = begin + record.size() - kFooterBytes;
    std::memcpy(begin, head_.data(), head_.size());
    char* out = begin + tensor_offset_ + tensor_bytes_;
    out = std::copy(label_head_.begin(), label_head_.end(), out);
    out = put_varint(out, static_cast<std::uint64_t>(sample.label), label_width_);
    out = put_values(out, sample.values);
    const std::string key_head = entry_head("key", sample.key.size(), kBytesList, key_width_);
    out = std::copy(key_head.begin(), key_head.end(), out);
    out = std::copy(sample.key.begin(), sample.key.end(), out);
    // With all four lengths two bytes wide, a pad entry is 17 bytes and its zeros.
    const auto zeros = static_cast<std::uint64_t>(end - out) - 17;
    const std::string pad_head = entry_head("pad", zeros, kBytesList, 2);
    out = std::copy(pad_head.begin(), pad_head.end(), out);
    std::fill(out, end, '\0');

    const auto rest = record.subspan(tensor_offset_ + tensor_bytes_);
    const std::uint32_t example_crc = crc32c::extend(tensor_.append(example_head_crc_, tensor_crc),
                                                     rest.first(rest.size() - kFooterBytes));
    put_little_endian(end, crc32c::masked(example_crc), 4);
    return crc32c::extend(example_.append(length_crc_, example_crc), rest.last(kFooterBytes));
  }

  Envelope envelope(std::span<const WrittenRecord>, const std::filesystem::path&) const override {
    return {};
  }

  ShardColumns columns(std::uint64_t) const override {
    const std::uint64_t label = tensor_offset_ + tensor_bytes_ + label_head_.size();
    ShardColumns all{.image = {tensor_offset_, record_bytes_, dtype_name_},
                     .label = {label, record_bytes_, "varint"},
                     .key = {}};
    std::uint64_t end = label + static_cast<std::uint64_t>(label_width_);
    for (std::size_t i = 0; i < named_.size(); ++i) {
      end += value_heads_[i].size();
      all.named.push_back({end, record_bytes_, std::string(name(named_[i].type))});
      end += named_[i].size_bytes();
    }
    const std::uint64_t key = end + entry_head("key", 0, kBytesList, key_width_).size() -
                              static_cast<std::uint64_t>(key_width_);
    all.key = {key, record_bytes_, "bytes"};
    return all;
  }

  std::uint64_t shard_bytes(std::uint64_t samples) const override {
    return checked_mul(samples, record_bytes_);
  }

 private:
  /// Makes what is before the tensor, the same in all records: `entries` are the first features.
  void make_head(std::uint64_t example, std::uint64_t features, const std::string& entries) {
    const auto out = std::back_inserter(head_);
    put_little_endian(out, example, 8);
    put_little_endian(out, crc32c::masked(crc32c::value(as_bytes(head_))), 4);
    head_ += kField1;
    put_varint(out, features, varint_bytes(features));
    head_ += entries;
    tensor_offset_ = head_.size();
    length_crc_ = crc32c::value(as_bytes(head_).first(kLengthBytes));
    example_head_crc_ = crc32c::value(as_bytes(head_).subspan(kLengthBytes));
    example_ = crc32c::BlockCombiner(example);
  }

  /// Floats are packed as protobuf packs them; bytes hold the other types, whose varints would have
  /// various lengths.
  char* put_values(char* out, std::span<const std::byte> values) const {
    for (std::size_t i = 0; i < named_.size(); ++i) {
      const auto own = values.first(named_[i].size_bytes());
      out = std::copy(value_heads_[i].begin(), value_heads_[i].end(), out);
      out = std::ranges::copy(as_text(own), out).out;
      values = values.subspan(own.size());
    }
    return out;
  }

  std::string dtype_name_;
  std::uint64_t tensor_bytes_;
  int label_width_;         // bytes of every label's varint
  int key_width_;           // bytes of every length around the key
  std::string head_;        // all bytes before the tensor, equal in every record
  std::string label_head_;  // the bytes between tensor and label, equal in every record
  std::vector<std::string> value_heads_;  // the bytes before the values of each named column
  std::uint32_t length_crc_ = 0;          // of the bytes before the Example
  std::uint32_t example_head_crc_ = 0;    // of its bytes before the tensor
  crc32c::BlockCombiner tensor_;
  crc32c::BlockCombiner example_{0};
};

}  // namespace

std::unique_ptr<const Framing> make_tfrecord_framing(const TensorSpec& spec,
                                                     const NameLimits& limits,
                                                     const std::vector<NamedColumn>& named) {
  return std::make_unique<TfrecordFraming>(spec, limits, named);
}

}  // namespace precache
