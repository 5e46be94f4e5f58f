// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "convert/source/source.hpp"

namespace precache {

/// The records of one file.
struct RecordImages {
  Listing records;  // each with its length and CRCs; the key is the path
  LabelTexts labels;
  std::string image_key;   // the feature; empty: the data of a record is the image itself
  bool has_image = false;  // of messages: whether one of them has bytes where images should be
};

/// Lists the records that tfrecord::SampleFinder finds in one file, whose number is `shard`. Throws
/// CorruptData, Unsupported for images that are not decoded, and InvalidArgument if there are none,
/// or labels are wanted and one is missing.
[[nodiscard]] RecordImages scan_records(std::span<const std::byte> file,
                                        const std::filesystem::path& path, std::uint32_t shard,
                                        const Labelling& labelling);

/// The image in a whole record; none if it has none. Throws CorruptData if a CRC is wrong.
/// `offset` is that of the record in the file, for messages.
[[nodiscard]] std::optional<std::span<const std::byte>> image_of_record(
    std::span<const std::byte> record, const std::string& image_key,
    const std::filesystem::path& path, std::uint64_t offset);

}  // namespace precache
