// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "precache/formats/contents.hpp"

namespace precache {

/// Counts the fields of records by name and type, for InspectOptions::records.
///
/// `proto` is a FileDescriptorSet as protoc writes it, with all imports; `message` is the full name
/// of the message that each record is. Throws InvalidArgument if the file is not one or lacks the
/// message, and IoError.
[[nodiscard]] std::unique_ptr<RecordSurvey> survey_messages(const std::filesystem::path& proto,
                                                            const std::string& message);

}  // namespace precache
