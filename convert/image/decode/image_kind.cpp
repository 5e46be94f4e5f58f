// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/image_kind.hpp"

#include "formats/shard/file_kind.hpp"

namespace precache {

ImageKind image_kind(std::span<const std::byte> file) {
  const std::string_view kind = image_file_kind(file);
  return kind == "JPEG" ? ImageKind::kJpeg : kind == "PNG" ? ImageKind::kPng : ImageKind::kOther;
}

}  // namespace precache
