// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace precache {

enum class ImageKind { kJpeg, kPng, kOther };

/// The kind of a file, told by its first bytes.
[[nodiscard]] ImageKind image_kind(std::span<const std::byte> file);

}  // namespace precache
