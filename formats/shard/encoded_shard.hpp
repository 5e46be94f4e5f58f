// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/shard/framing.hpp"

namespace precache {

/// An image file as it was found, and what is known of it.
struct EncodedImage {
  SampleName name;
  std::string_view extension;   // "jpg" or "png"
  std::string_view class_name;  // empty where there is none
  std::span<const std::byte> bytes;
};

/// Writes image files to one shard, one after another: records of their own sizes, which readers
/// find by walking over them. docs/formats/encoded.md has the bytes.
///
/// The file is written at the path that was given; who wants it to appear at once renames it. Use
/// one from one thread at a time. All calls throw IoError.
class EncodedShard {
 public:
  virtual ~EncodedShard() = default;
  virtual void append(const EncodedImage& image) = 0;
  /// What the manifest wants to know of the file.
  struct Written {
    std::uint64_t bytes = 0;
    std::uint32_t crc32c = 0;
  };
  /// Completes the file and syncs it.
  [[nodiscard]] virtual Written finish() = 0;
};

/// Throws IoError, and Unsupported for HDF5, which a library of its own writes.
[[nodiscard]] std::unique_ptr<EncodedShard> make_encoded_shard(Format format,
                                                               const std::filesystem::path& path);

/// About what a record takes beside the image.
[[nodiscard]] std::uint64_t encoded_overhead_bytes(Format format, const NameLimits& limits);

}  // namespace precache
