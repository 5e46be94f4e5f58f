// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/index_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "formats/bytes/utf8.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kMostChannels = 4;

std::string text_of(std::span<const std::uint64_t> extents) {
  return fmt::format("its samples are arrays of shape ({})", fmt::join(extents, ", "));
}

bool are_channels(std::uint64_t extent) { return extent >= 1 && extent <= kMostChannels; }

}  // namespace

SpecGuess spec_of(DType dtype, Layout layout, std::span<const std::uint64_t> extents) {
  const auto fits = [](std::uint64_t extent) { return extent >= 1 && extent <= UINT32_MAX; };
  if (extents.size() != 3 || !std::ranges::all_of(extents, fits)) {
    return {std::nullopt, text_of(extents) + ", not images"};
  }
  const auto at = [&](std::size_t axis) { return static_cast<std::uint32_t>(extents[axis]); };
  const bool chw = layout == Layout::kChw;
  return {TensorSpec{dtype, layout, at(chw ? 1 : 0), at(chw ? 2 : 1), at(chw ? 0 : 2)}, {}};
}

SpecGuess guess_spec(DType dtype, std::span<const std::uint64_t> extents) {
  if (extents.size() == 2) {
    const std::array<std::uint64_t, 3> plane{1, extents[0], extents[1]};
    return spec_of(dtype, Layout::kChw, plane);
  }
  if (extents.size() == 3 && are_channels(extents[0])) {
    return spec_of(dtype, Layout::kChw, extents);
  }
  if (extents.size() == 3 && are_channels(extents[2])) {
    return spec_of(dtype, Layout::kHwc, extents);
  }
  return {std::nullopt, text_of(extents) + ", whose image axes are ambiguous"};
}

void IndexBuilder::Track::add(const ValueLocation& spot) {
  if (count_ == 0) {
    first_ = spot;
    is_regular_ = spot.kind != ValueLocation::Kind::kElsewhere;
  } else if (spot.kind != first_.kind || spot.type != first_.type) {
    is_regular_ = false;
  } else if (spot.kind == ValueLocation::Kind::kColumn) {
    if (count_ == 1) stride_ = spot.offset - last_;
    is_regular_ = is_regular_ && spot.offset > last_ && spot.offset - last_ == stride_;
  }
  last_ = spot.offset;
  ++count_;
}

Column IndexBuilder::Track::column(std::uint64_t only_stride) const {
  if (first_.kind != ValueLocation::Kind::kColumn) return {};
  return {first_.offset, count_ == 1 ? only_stride : stride_, std::string(first_.type)};
}

IndexBuilder::IndexBuilder(Format format, std::uint64_t file_bytes, std::filesystem::path path,
                           const std::optional<TensorSpec>& given)
    : path_(std::move(path)), given_(given) {
  index_.format = format;
  index_.bytes = file_bytes;
}

std::optional<TensorSpec> IndexBuilder::spec_of(const FoundSample& sample) const {
  if (!given_) return sample.spec;
  if (sample.spec) {
    const bool is_same_array =
        sample.spec->dtype == given_->dtype && sample.spec->shape() == given_->shape();
    return is_same_array ? given_ : sample.spec;
  }
  const bool fits = sample.shape_unknown && given_->size_bytes() == sample.payload_bytes;
  return fits ? given_ : std::nullopt;
}

void IndexBuilder::note_spec(const FoundSample& sample) {
  if (!index_.unsupported_reason.empty()) return;
  const auto spec = spec_of(sample);
  if (!spec) {
    index_.unsupported_reason = sample.unsupported_reason;
  } else if (samples() == 0) {
    index_.spec = spec;
  } else if (*spec != *index_.spec) {
    const std::string_view first_key =
        std::string_view(index_.keys).substr(0, index_.places[0].key_bytes);
    index_.unsupported_reason =
        fmt::format("samples 0 ('{}', {}) and {} ('{}', {}) differ", first_key, index_.spec->text(),
                    samples(), sample.key, spec->text());
  }
  if (!index_.unsupported_reason.empty()) index_.spec.reset();
}

std::int64_t IndexBuilder::label_of(const FoundSample& sample) {
  if (sample.label_name.empty()) {
    has_numbers_ = has_numbers_ || sample.label != -1;
    return sample.label;
  }
  const auto [known, is_new] = name_numbers_.emplace(
      printable(sample.label_name), static_cast<std::int64_t>(name_numbers_.size()));
  if (is_new) index_.label_names.push_back(known->first);
  return known->second;
}

void IndexBuilder::add(const FoundSample& sample) {
  note_spec(sample);
  if (samples() == 0) first_record_bytes_ = sample.record_end - sample.record;
  if (index_.spec) {
    image_.add({ValueLocation::Kind::kColumn, sample.payload, name(index_.spec->dtype)});
    ValueLocation label = sample.label_spot;
    if (!sample.label_name.empty()) label.kind = ValueLocation::Kind::kElsewhere;
    label_.add(label);
    key_.add(sample.key_spot);
    size_.add(sample.size_spot);
  }
  // A tar can state one name for all entries.
  if (sample.key.size() > index_.bytes - index_.keys.size()) {
    throw CorruptData(path_, sample.record, "the names of its samples are longer than the file");
  }
  index_.places.push_back({sample.record, sample.payload, sample.payload_bytes, label_of(sample),
                           index_.keys.size(), sample.key.size()});
  index_.keys += sample.key;
}

void IndexBuilder::add_size_column(ShardColumns& columns) {
  Column size = size_.column(first_record_bytes_);
  if (!size_.is_regular() || size.type.empty()) return;
  columns.named.push_back(std::move(size));
  const NamedColumn column{kSizeColumn, ValueType::kInt32, {2}, {}};
  index_.named = std::make_shared<const std::vector<NamedColumn>>(1, column);
  std::erase(index_.left_out, kSizeColumn);
}

ShardIndex IndexBuilder::finish() && {
  index_.samples = samples();
  if (has_numbers_ && !index_.label_names.empty()) {
    throw Unsupported(
        fmt::format("some labels of '{}' are numbers and some are names, such as '{}'",
                    path_.string(), index_.label_names.front()));
  }
  if (index_.samples == 0) index_.unsupported_reason = "it has no samples";
  if (index_.spec && image_.is_regular() && label_.is_regular() && key_.is_regular()) {
    ShardColumns columns{image_.column(first_record_bytes_), label_.column(first_record_bytes_),
                         key_.column(first_record_bytes_)};
    add_size_column(columns);
    index_.columns = std::move(columns);
    index_.places = {};
    index_.keys = {};
  }
  return std::move(index_);
}

}  // namespace precache
