// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/tfrecord_finder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/shard/file_kind.hpp"
#include "formats/shard/index_builder.hpp"
#include "formats/shard/limits.hpp"

namespace precache::tfrecord {
namespace {

// Usual names of features, in the order in which they are looked for.
constexpr std::array<std::string_view, 7> kImageNames{"image/encoded", "image", "image_raw", "img",
                                                      "jpg",           "jpeg",  "png"};
constexpr std::array<std::string_view, 4> kLabelNames{"image/class/label", "label", "class", "cls"};
// Features that hold only the name of the class.
constexpr std::array<std::string_view, 3> kLabelTexts{"image/class/text", "label_name",
                                                      "class_name"};
constexpr std::array<std::string_view, 8> kKeyNames{
    "key",      "image/filename", "__key__",         "image_id",
    "filename", "file_name",      "image/source_id", "id"};
constexpr std::array<std::string_view, 2> kHeightNames{"height", "image/height"};
constexpr std::array<std::string_view, 2> kWidthNames{"width", "image/width"};
constexpr std::array<std::string_view, 4> kChannelNames{"channels", "image/channels", "depth",
                                                        "image/depth"};
constexpr std::array<std::string_view, 2> kShapeNames{"shape", "image/shape"};

// Features that precache writes to align tensors.
constexpr std::array<std::string_view, 2> kFillNames{"align", "pad"};
constexpr std::array<std::span<const std::string_view>, 8> kKnownNames{
    kLabelNames, kLabelTexts,   kKeyNames,   kHeightNames,
    kWidthNames, kChannelNames, kShapeNames, kFillNames};

// Ranks of image features. The index of a usual name is added to them.
constexpr std::size_t kPixels = 100;      // of a usual name, and of a known shape
constexpr std::size_t kOtherName = 200;   // a JPEG or PNG file
constexpr std::size_t kOtherKind = 300;   // another image file
constexpr std::size_t kOtherBytes = 400;  // of a usual name
constexpr std::size_t kNoImage = SIZE_MAX;

bool has_bytes(const Feature& feature) {
  return feature.kind == FeatureKind::kBytes && feature.count > 0;
}

bool has_integers(const Feature& feature) {
  return feature.kind == FeatureKind::kIntegers && feature.count > 0;
}

bool has_values(const Feature& feature) {
  return has_bytes(feature) || has_integers(feature) ||
         (feature.kind == FeatureKind::kFloats && !feature.list.empty());
}

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::optional<std::uint64_t> extent(const Feature* feature) {
  if (feature == nullptr || feature->count != 1 || feature->integers[0] < 1) return std::nullopt;
  return static_cast<std::uint64_t>(feature->integers[0]);
}

std::optional<TensorSpec> if_it_fits(const SpecGuess& guess, std::uint64_t bytes) {
  if (!guess.spec) return std::nullopt;
  // The product of two 32-bit extents fits in 64 bits, that of three may not.
  const std::uint64_t area = std::uint64_t{guess.spec->height} * guess.spec->width;
  std::uint64_t size = 0;
  const bool wraps = __builtin_mul_overflow(area, guess.spec->channels, &size);
  return !wraps && size == bytes ? guess.spec : std::nullopt;
}

std::optional<TensorSpec> spec_of_shape(const Feature& shape, std::uint64_t bytes) {
  if (shape.count < 2 || shape.count > 3) return std::nullopt;
  std::array<std::uint64_t, 3> extents{};
  for (std::size_t i = 0; i < shape.count; ++i) {
    if (shape.integers[i] < 1) return std::nullopt;
    extents[i] = static_cast<std::uint64_t>(shape.integers[i]);
  }
  const std::span<const std::uint64_t> all(extents.data(), shape.count);
  // Programs that write a shape next to raw bytes use hwc, so only an unambiguous chw is taken for
  // chw.
  const bool is_hwc = all.size() == 3 && all[2] <= 4;
  return if_it_fits(
      is_hwc ? precache::spec_of(DType::kUint8, Layout::kHwc, all) : guess_spec(DType::kUint8, all),
      bytes);
}

}  // namespace

/// The last feature of this name counts, as in protobuf's maps.
const Feature* SampleFinder::find(std::string_view name, Fits fits) const {
  const auto last = std::find_if(features_.rbegin(), features_.rend(),
                                 [&](const Feature& feature) { return feature.name == name; });
  return last != features_.rend() && fits(*last) ? &*last : nullptr;
}

std::vector<std::string_view> SampleFinder::other_names() const {
  std::vector<std::string_view> names;
  for (const Feature& feature : features_) {
    const bool is_known = feature.name == image_name_ || feature.name == keys_.label ||
                          std::ranges::any_of(kKnownNames, [&](Names known) {
                            return is_among(known, feature.name);
                          });
    if (!is_known) names.push_back(feature.name);
  }
  return names;
}

const Feature* SampleFinder::find_first(Names names, Fits fits) const {
  for (const std::string_view name : names) {
    if (const Feature* const feature = find(name, fits)) return feature;
  }
  return nullptr;
}

const Feature* SampleFinder::find_label() const {
  if (keys_.without_labels) return nullptr;
  if (!keys_.label.empty()) return find(keys_.label, has_values);
  const Feature* const label = find_first(kLabelNames, has_values);
  return label != nullptr ? label : find_first(kLabelTexts, has_bytes);
}

std::optional<TensorSpec> SampleFinder::spec_of(std::uint64_t bytes) const {
  if (const Feature* const shape = find_first(kShapeNames, has_integers)) {
    if (const auto spec = spec_of_shape(*shape, bytes)) return spec;
  }
  const auto height = extent(find_first(kHeightNames, has_integers));
  const auto width = extent(find_first(kWidthNames, has_integers));
  std::uint64_t area = 0;
  if (!height || !width || __builtin_mul_overflow(*height, *width, &area)) return std::nullopt;
  const auto channels = extent(find_first(kChannelNames, has_integers)).value_or(bytes / area);
  if (channels < 1 || channels > 4) return std::nullopt;
  const std::array<std::uint64_t, 3> extents{*height, *width, channels};
  return if_it_fits(precache::spec_of(DType::kUint8, Layout::kHwc, extents), bytes);
}

std::size_t SampleFinder::image_rank(const Feature& feature) const {
  if (!has_bytes(feature)) return kNoImage;
  const auto named = std::ranges::find(kImageNames, feature.name);
  const auto place = static_cast<std::size_t>(named - kImageNames.begin());
  const bool is_named = named != kImageNames.end();
  const std::string_view kind = image_file_kind(feature.bytes);
  if (is_decoded(kind)) return is_named ? place : kOtherName;
  if (is_named && spec_of(feature.bytes.size())) return kPixels + place;
  if (!kind.empty()) return kOtherKind + place;
  if (is_named) return kOtherBytes + place;
  if (is_among(kKeyNames, feature.name) || is_among(kLabelNames, feature.name) ||
      is_among(kLabelTexts, feature.name)) {
    return kNoImage;
  }
  return kNoImage - 1 - feature.bytes.size();  // the largest
}

void SampleFinder::choose_image() {
  std::size_t best = kNoImage;
  for (const Feature& feature : features_) {
    const std::size_t rank = image_rank(feature);
    if (rank < best) image_name_ = feature.name;
    best = std::min(best, rank);
  }
}

const FoundRecord* SampleFinder::next() {
  const auto record = records_.next();
  if (!record) return nullptr;
  const auto data = file_.subspan(record->data, record->data_bytes);
  found_ = {.record = *record, .kind = read_features(data, features_), .payload = data};
  if (found_.kind != MessageKind::kExample) {
    found_.image_kind = image_file_kind(data);
    found_.has_image = keys_.image.empty() && !found_.image_kind.empty();
    return &found_;
  }
  if (image_name_.empty()) choose_image();
  const Feature* const image = image_name_.empty() ? nullptr : find(image_name_, has_bytes);
  if (image != nullptr) {
    found_.has_image = true;
    found_.payload = image->bytes;
    found_.spec = spec_of(image->bytes.size());
    // The first bytes follow the feature's header, so reading them touches no further page.
    if (!found_.spec) found_.image_kind = image_file_kind(image->bytes);
  }
  found_.label = find_label();
  found_.key = find_first(kKeyNames, has_bytes);
  return &found_;
}

std::string unfit_label(const Feature& feature) {
  if (feature.kind == FeatureKind::kFloats) return fmt::format("'{}' holds floats", feature.name);
  if (feature.kind == FeatureKind::kNone) return fmt::format("'{}' is empty", feature.name);
  if (feature.kind == FeatureKind::kIntegers && feature.count > Feature::kMostIntegers) {
    return fmt::format("'{}' has more than {} values", feature.name, Feature::kMostIntegers);
  }
  if (feature.count != 1) return fmt::format("'{}' has {} values", feature.name, feature.count);
  if (feature.kind == FeatureKind::kBytes && feature.bytes.size() > kLongestLabel) {
    return fmt::format("'{}' is a text of {} bytes", feature.name, feature.bytes.size());
  }
  return {};
}

}  // namespace precache::tfrecord
