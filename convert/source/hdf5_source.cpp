// SPDX-License-Identifier: Apache-2.0
#include "convert/source/hdf5_source.hpp"

#include <fmt/format.h>

#include <cstring>

#include "formats/hdf5/hdf5_readers.hpp"
#include "formats/hdf5/helper/helper_client.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

// The largest float of an image is 1 or 255. Something in between is neither: resizing that
// overshoots, or normalised numbers.
constexpr float kSurelyOf255 = 16;

}  // namespace

void Hdf5Images::track_max(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(float) <= bytes.size() && brightest_ < kSurelyOf255;
       at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (value > brightest_) brightest_ = value;  // false for NaN
  }
}

hdf5::ImageRows Hdf5Images::find(const SourceShard& shard) const {
  const std::filesystem::path& path = shard.given.path;
  const bool is_labelled = labelling_.kind == Labelling::Kind::kSource;
  hdf5::ImageRows rows =
      hdf5::find_images_in_helper(helper_, shard.data.path, shard.data.bytes,
                                  {labelling_.image_key, labelling_.label_key, !is_labelled}, path);
  if (!is_labelled || !rows.labels.empty() || rows.count == 0) return rows;
  throw InvalidArgument(
      fmt::format("'{}' has no dataset with a usual name for labels that fits the images{}{}",
                  path.string(), rows.maybe_labels.empty() ? "" : "; ", rows.maybe_labels),
      "Set `label_key` to its name, or `labels` to none or to a CSV file.");
}

void Hdf5Images::add(std::span<const std::byte> file, SourceShard& shard, Unpacker& unpacker) {
  const std::filesystem::path path = shard.given.path;
  const hdf5::ImageRows rows = find(shard);
  const bool floats = rows.array && rows.array->type == PixelType::kFloat32;
  std::vector<std::uint64_t> ends;  // of rows of various lengths in the copy
  if (rows.offset) {
    if (floats) track_max(file.subspan(*rows.offset, rows.count * rows.row_bytes));
  } else {
    const std::string name = fmt::format("{:06}.rows", files_);
    shard.data = unpacker.write(path, name, [&](const auto& append) {
      std::uint64_t end = 0;
      hdf5::read_rows(file, path, rows, [&](std::span<const std::byte> bytes) {
        append(bytes);
        if (floats) track_max(bytes);
        if (rows.row_bytes == 0) ends.push_back(end += bytes.size());
      });
    });
  }
  if (rows.array) shard.form = {SampleForm::Kind::kArray, {}, {*rows.array, false}};
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    const bool has_key = !rows.keys.empty() && !rows.keys[i].empty();
    const std::string key = has_key ? rows.keys[i] : numbered_name(path, i);
    const std::uint64_t begin = rows.row_bytes != 0 ? rows.offset.value_or(0) + i * rows.row_bytes
                                : i == 0            ? 0
                                                    : ends[i - 1];
    const std::uint64_t size = rows.row_bytes != 0 ? rows.row_bytes : ends[i] - begin;
    listing_.add({key, size, 0, -1, files_, begin});
    if (!rows.labels.empty()) texts_.add(rows.labels[i]);
  }
  if (classes_.empty()) classes_ = rows.classes;
  ++files_;
}

Source Hdf5Images::finish(std::vector<SourceShard> shards, const std::filesystem::path& root) {
  Source source;
  source.listing = std::move(listing_);
  source.classes = labelling_.classes;
  source.key_rule = KeyRule::kName;
  for (SourceShard& shard : shards) {
    const bool floats = shard.form.kind == SampleForm::Kind::kArray &&
                        shard.form.array.pixels.type == PixelType::kFloat32;
    if (!floats) continue;
    if (brightest_ > 1 && brightest_ < kSurelyOf255) {
      throw Unsupported(
          fmt::format(
              "the largest number in '{}' is {}; images of floats must be 0 to 1 or 0 to 255",
              root.string(), brightest_),
          "Scale the numbers, or store the images as uint8.");
    }
    shard.form.array.is_unit_range = brightest_ <= 1;
  }
  source.shards = std::move(shards);
  if (labelling_.kind != Labelling::Kind::kSource) return source;
  const auto where = [&](std::size_t i) {
    return fmt::format("'{}' of '{}'", source.listing[i].path, root.string());
  };
  label_by_texts(source, texts_, labelling_.classes, where);
  name_classes(source, classes_);
  return source;
}

}  // namespace precache
