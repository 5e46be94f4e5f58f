// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/source/protobuf/message_path.hpp"
#include "convert/source/tfrecord_images.hpp"

namespace precache {

/// Where `labelling` says that images and labels of messages are. Throws InvalidArgument,
/// Unsupported and IoError as MessageSchema does.
[[nodiscard]] MessagePaths message_paths(const Labelling& labelling);

/// The classes that the enum of the label fixes: its names by number, if its numbers are 0, 1, 2
/// and so on; else none.
[[nodiscard]] std::vector<std::string> enum_classes(const MessagePaths& paths);

/// The images in the messages of one file, each as a range of its bytes; `labels` are texts for
/// label_by_texts(). Reads and checks all data, as the CRCs cover whole records.
///
/// Throws CorruptData for a wrong CRC and for a record that is not a message, InvalidArgument if
/// labels are wanted and one is missing, Unsupported for images that no decoder here reads.
[[nodiscard]] RecordImages scan_messages(std::span<const std::byte> file,
                                         const std::filesystem::path& path, std::uint32_t shard,
                                         const MessagePaths& paths, const Labelling& labelling);

}  // namespace precache
