// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/error.hpp"

#include <fmt/format.h>

#include <system_error>

namespace precache {

IoError::IoError(const std::string& action, std::filesystem::path path, int code, std::string hint)
    : Error(code == 0 ? fmt::format("{} '{}'", action, path.string())
                      : fmt::format("{} '{}': {}", action, path.string(),
                                    std::generic_category().message(code)),
            std::move(hint)),
      path_(std::move(path)),
      code_(code) {}

CorruptData::CorruptData(std::filesystem::path path, std::uint64_t offset,
                         const std::string& reason)
    : Error(fmt::format("'{}' is corrupt at byte {}: {}", path.string(), offset, reason)),
      path_(std::move(path)),
      offset_(offset),
      reason_(reason) {}

}  // namespace precache
