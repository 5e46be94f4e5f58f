// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "convert/source/source.hpp"

namespace precache {

/// Which features of an Example are what. Names that are empty stand for none.
struct RecordFeatures {
  std::string image;  // empty: the data of a record is the image itself
  std::string label;
  std::string key;
};

/// Finds them in the first record, by the names that were given, or by common ones and by content.
/// None if the file has no records. Throws InvalidArgument if there is no encoded image.
[[nodiscard]] std::optional<RecordFeatures> find_features(std::span<const std::byte> file,
                                                          const std::filesystem::path& path,
                                                          const Labelling& labelling);

/// The records of one file, whose number is `shard`.
struct RecordImages {
  Listing records;  // each with its length and CRCs; the key is the path
  LabelTexts labels;
  bool has_image = false;  // of messages: whether one of them has bytes where images should be
};

/// `name` is what samples without a key of their own are called after. Throws CorruptData, and
/// InvalidArgument if labels are wanted and one is missing.
[[nodiscard]] RecordImages scan_records(std::span<const std::byte> file,
                                        const std::filesystem::path& path, std::uint32_t shard,
                                        const RecordFeatures& features, const Labelling& labelling);

/// The image in a whole record; none if it has none. Throws CorruptData if a CRC is wrong.
/// `offset` is that of the record in the file, for messages.
[[nodiscard]] std::optional<std::span<const std::byte>> image_of_record(
    std::span<const std::byte> record, const std::string& image_key,
    const std::filesystem::path& path, std::uint64_t offset);

}  // namespace precache
