// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/tfrecord_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/index_builder.hpp"
#include "formats/shard/spec_guess.hpp"
#include "formats/tar/webdataset.hpp"
#include "formats/tfrecord/example_fields.hpp"
#include "formats/tfrecord/feature_names.hpp"
#include "formats/tfrecord/label_feature.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"

namespace precache::tfrecord {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 2> kHeightNames{"height", "image/height"};
constexpr std::array<std::string_view, 2> kWidthNames{"width", "image/width"};
constexpr std::array<std::string_view, 4> kChannelNames{"channels", "image/channels", "depth",
                                                        "image/depth"};
constexpr std::array<std::string_view, 2> kShapeNames{"shape", "image/shape"};

/// The feature of a record that is best by some order; the last of equals, as in protobuf's maps.
class Choice {
 public:
  void offer(const Feature& feature, Names names) {
    const auto found = std::ranges::find(names, feature.name);
    if (found != names.end()) offer(feature, static_cast<std::size_t>(found - names.begin()));
  }
  void offer(const Feature& feature, std::size_t rank) {
    if (feature_ && rank > rank_) return;
    feature_ = feature;
    rank_ = rank;
  }
  explicit operator bool() const { return feature_.has_value(); }
  const Feature& operator*() const { return *feature_; }
  const Feature* operator->() const { return &*feature_; }

 private:
  std::optional<Feature> feature_;
  std::size_t rank_ = 0;
};

/// What the features of one Example say.
struct Fields {
  Choice image, label, label_text, key, height, width, channels, shape;
};

std::optional<std::uint64_t> extent(const Choice& choice) {
  if (!choice || choice->count != 1 || choice->integers[0] < 1) return std::nullopt;
  return static_cast<std::uint64_t>(choice->integers[0]);
}

bool has_size(const std::optional<TensorSpec>& spec, std::uint64_t bytes) {
  // Extents of 32 bits each: only two of them can be multiplied without a check.
  std::uint64_t size = 0;
  return spec &&
         !__builtin_mul_overflow(std::uint64_t{spec->height} * spec->width, spec->channels,
                                 &size) &&
         size == bytes;
}

std::optional<TensorSpec> spec_of_shape(const Feature& shape, std::uint64_t bytes) {
  if (shape.count < 2 || shape.count > 3) return std::nullopt;
  std::array<std::uint64_t, 3> extents{};
  for (std::size_t i = 0; i < shape.count; ++i) {
    if (shape.integers[i] < 1) return std::nullopt;
    extents[i] = static_cast<std::uint64_t>(shape.integers[i]);
  }
  const std::span<const std::uint64_t> all(extents.data(), shape.count);
  // What writes a shape beside raw bytes is used to hwc, so only a clear chw is taken for it.
  auto guess = all.size() == 3 && all[2] <= 4 ? precache::spec_of(DType::kUint8, Layout::kHwc, all)
                                              : guess_spec(DType::kUint8, all);
  return has_size(guess.spec, bytes) ? guess.spec : std::nullopt;
}

std::optional<TensorSpec> spec_of(const Fields& fields, std::uint64_t bytes) {
  if (fields.shape) {
    if (const auto spec = spec_of_shape(*fields.shape, bytes)) return spec;
  }
  const auto height = extent(fields.height);
  const auto width = extent(fields.width);
  if (!height || !width) return std::nullopt;
  std::uint64_t area = 0;
  if (__builtin_mul_overflow(*height, *width, &area)) return std::nullopt;
  const std::uint64_t channels = extent(fields.channels).value_or(bytes / area);
  if (channels < 1 || channels > 4) return std::nullopt;
  const std::array<std::uint64_t, 3> extents{*height, *width, channels};
  const auto guess = precache::spec_of(DType::kUint8, Layout::kHwc, extents);
  return has_size(guess.spec, bytes) ? guess.spec : std::nullopt;
}

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::filesystem::path& path,
          const std::optional<TensorSpec>& given, const SampleKeys& keys)
      : file_(file),
        path_(path),
        keys_(keys),
        builder_(Format::kTfrecord, file.size(), path, given) {}

  ShardIndex run() && {
    RecordCursor records(file_, path_);
    while (const auto record = records.next()) take(*record);
    return std::move(builder_).finish();
  }

 private:
  void take(const Record& record) {
    FoundSample sample{.record = record.begin,
                       .record_end = record.end,
                       .payload = record.data,
                       .payload_bytes = record.data_bytes};
    Fields fields;
    if (!read(file_.subspan(record.data, record.data_bytes), fields)) {
      sample.obstacle = fmt::format("record {} is no tf.train.Example", builder_.samples());
    } else {
      if (fields.image) {
        take_image(fields, sample);
      } else {
        if (!keys_.image.empty()) refuse_without(keys_.image);
        sample.obstacle = fmt::format("record {} has no feature of bytes", builder_.samples());
      }
      take_label(fields, sample);
      take_key(fields, sample);
    }
    builder_.add(sample);
  }

  /// False if the record is no Example.
  bool read(std::span<const std::byte> example, Fields& fields) const {
    ExampleCursor cursor(example);
    while (const auto feature = cursor.next()) {
      if (feature->kind == FeatureKind::kBytes && feature->count > 0) {
        offer_bytes(*feature, fields);
      } else if (feature->kind == FeatureKind::kIntegers && feature->count > 0) {
        offer_label(*feature, fields);
        fields.height.offer(*feature, kHeightNames);
        fields.width.offer(*feature, kWidthNames);
        fields.channels.offer(*feature, kChannelNames);
        fields.shape.offer(*feature, kShapeNames);
      } else if (feature->kind == FeatureKind::kFloats && !feature->list.empty()) {
        offer_label(*feature, fields);
      }
    }
    return !cursor.is_malformed();
  }

  void offer_label(const Feature& feature, Fields& fields) const {
    if (keys_.without_labels) return;
    if (!keys_.label.empty()) {
      if (feature.name == keys_.label) fields.label.offer(feature, 0);
      return;
    }
    fields.label.offer(feature, kLabelNames);
    if (feature.kind == FeatureKind::kBytes) fields.label_text.offer(feature, kLabelTexts);
  }

  void offer_bytes(const Feature& feature, Fields& fields) const {
    fields.key.offer(feature, kKeyNames);
    offer_label(feature, fields);  // as text, from those who convert tars
    if (!keys_.image.empty()) {
      if (feature.name == keys_.image) fields.image.offer(feature, 0);
      return;
    }
    const auto named = std::ranges::find(kImageNames, feature.name);
    if (feature.name == image_name_ && !image_name_.empty()) {
      fields.image.offer(feature, 0);  // what the first record had
    } else if (named != kImageNames.end()) {
      fields.image.offer(feature, 1 + static_cast<std::size_t>(named - kImageNames.begin()));
    } else if (std::ranges::find(kKeyNames, feature.name) == kKeyNames.end() &&
               std::ranges::find(kLabelNames, feature.name) == kLabelNames.end() &&
               std::ranges::find(kLabelTexts, feature.name) == kLabelTexts.end()) {
      fields.image.offer(feature, SIZE_MAX - feature.bytes.size());  // the largest
    }
  }

  void take_image(const Fields& fields, FoundSample& sample) {
    const Feature& image = *fields.image;
    if (image_name_.empty()) image_name_ = image.name;
    sample.payload = offset_of(image.bytes.data());
    sample.payload_bytes = image.bytes.size();
    sample.spec = spec_of(fields, image.bytes.size());
    if (sample.spec) return;
    // The first bytes lie beside the feature's head, so looking at them costs no page.
    const std::string_view kind = image_file_kind(image.bytes);
    sample.shape_unknown = kind.empty();
    sample.obstacle =
        kind.empty() ? "its samples are raw bytes of unknown shape; no height, width and channels, "
                       "or shape, beside them agree with their number"
                     : fmt::format("its samples are {} files", kind);
  }

  [[noreturn]] void refuse_without(const std::string& feature) const {
    throw InvalidArgument(fmt::format("record {} of '{}' has no feature '{}'", builder_.samples(),
                                      path_.string(), feature));
  }

  void take_label(const Fields& fields, FoundSample& sample) {
    using Kind = ValueLocation::Kind;
    if (!fields.label && !fields.label_text) {
      if (!keys_.label.empty()) refuse_without(keys_.label);
      return;
    }
    const Feature& label = fields.label ? *fields.label : *fields.label_text;
    if (const std::string unfit = unfit_label(label); !unfit.empty()) {
      return builder_.note_unfit_labels(fmt::format("{} in record {}", unfit, builder_.samples()));
    }
    if (label.kind == FeatureKind::kIntegers) {
      sample.label = label.integers[0];
      sample.label_spot = {Kind::kColumn, offset_of(label.encoded), "varint"};
      return;
    }
    const std::string_view text = tar::trimmed(as_text(label.bytes));
    const char* const end = text.data() + text.size();
    std::int64_t value = 0;
    if (const auto result = std::from_chars(text.data(), end, value);
        result.ec == std::errc{} && result.ptr == end) {
      sample.label = value;
      sample.label_spot.kind = Kind::kElsewhere;
    } else {
      sample.label_name = text;
    }
  }

  void take_key(const Fields& fields, FoundSample& sample) const {
    if (!fields.key) return;
    sample.key = as_text(fields.key->bytes);
    sample.key_spot = {ValueLocation::Kind::kColumn, offset_of(fields.key->encoded), "bytes"};
  }

  [[nodiscard]] std::uint64_t offset_of(const std::byte* place) const {
    return static_cast<std::uint64_t>(place - file_.data());
  }

  std::span<const std::byte> file_;
  const std::filesystem::path& path_;
  const SampleKeys& keys_;
  IndexBuilder builder_;
  std::string image_name_;
};

}  // namespace

ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                const std::optional<TensorSpec>& given, const SampleKeys& keys) {
  return Scanner(file, path, given, keys).run();
}

}  // namespace precache::tfrecord
