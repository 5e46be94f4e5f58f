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
  bool has_image = false;  // of messages: whether one of them has bytes in the field of the image
};

/// Throws Unsupported if `kind`, as image_file_kind() names it, is an image format that no decoder
/// here reads. `where` is for the message.
void refuse_undecoded(std::string_view kind, const std::string& where);

/// Lists the records that tfrecord::SampleFinder finds in one file, whose number is `shard`. Throws
/// CorruptData, Unsupported for images that are not decoded, and InvalidArgument if there are none,
/// or labels are wanted and one is missing.
[[nodiscard]] RecordImages scan_records(std::span<const std::byte> file,
                                        const std::filesystem::path& path, std::uint32_t shard,
                                        const Labelling& labelling);

/// The image in a whole record, if it has one. Throws CorruptData if a CRC is wrong.
/// `offset` is that of the record in the file, for messages.
[[nodiscard]] std::optional<std::span<const std::byte>> image_of_record(
    std::span<const std::byte> record, const std::string& image_key,
    const std::filesystem::path& path, std::uint64_t offset);

}  // namespace precache
