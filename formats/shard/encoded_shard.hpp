// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "formats/shard/framing.hpp"

namespace precache {

/// An image file, unchanged, and its names.
struct EncodedImage {
  SampleName name;
  std::string_view extension;   // "jpg" or "png"
  std::string_view class_name;  // empty if there is none
  std::span<const std::byte> bytes;
};

/// Writes image files to one shard, one after another. Records have different sizes; readers find
/// them by walking over the file. docs/formats/encoded.md has the bytes.
///
/// The file grows at the given path; to publish it at once, the caller writes to a temporary name
/// and renames it. Use one from one thread at a time. All calls throw IoError.
class EncodedShard {
 public:
  virtual ~EncodedShard() = default;
  virtual void append(const EncodedImage& image) = 0;
  /// The values of the file for its manifest entry.
  struct Written {
    std::uint64_t bytes = 0;
    std::uint32_t crc32c = 0;
  };
  /// Completes the file and syncs it.
  [[nodiscard]] virtual Written finish() = 0;
};

/// Throws IoError, and Unsupported for HDF5: use make_encoded_hdf5().
[[nodiscard]] std::unique_ptr<EncodedShard> make_encoded_shard(Format format,
                                                               const std::filesystem::path& path);

/// The approximate size of a record without its image.
[[nodiscard]] std::uint64_t encoded_overhead_bytes(Format format, const NameLimits& limits);

}  // namespace precache
