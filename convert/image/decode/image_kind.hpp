// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace precache {

enum class ImageKind { kJpeg, kPng, kOther };

/// The kind of a file, told by its first bytes.
[[nodiscard]] ImageKind image_kind(std::span<const std::byte> file);

/// What a file of kind kOther seems to be, for messages: "WebP", "an empty file", ...
[[nodiscard]] std::string_view describe_other(std::span<const std::byte> file);

}  // namespace precache
