// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "precache/convert/job.hpp"

namespace precache {

/// Why a sample was skipped. Large folders always hold some bad files, so this is a value and not
/// an exception.
struct Rejection {
  RejectionStage stage = RejectionStage::kDecode;
  std::string reason;
};

/// Pixels have four bytes inside the pipeline: red, green, blue and an unused one.
inline constexpr std::size_t kPixelBytes = 4;
/// Readable bytes after every row of pixels, so that vector loads may run over its end.
inline constexpr std::size_t kRowSlack = 64;

struct ImageHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int orientation = 1;  // as in EXIF: 1 to 8
  /// The file is too short for so many pixels: decoding would only waste memory.
  bool is_implausible = false;
};

/// Frees the memory of a buffer that a huge image has made grow.
inline void shrink_if_large(std::vector<std::uint8_t>& buffer) {
  constexpr std::size_t kKeptBytes = std::size_t{32} << 20;
  if (buffer.capacity() > kKeptBytes) std::vector<std::uint8_t>().swap(buffer);
}

/// A rectangle of an image as stored, before its orientation is applied.
struct Region {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

/// Takes the rows of a region from top to bottom. A row is valid during the call and has kRowSlack
/// bytes after it.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void take_row(const std::uint8_t* pixels) = 0;
};

/// Decodes one kind of image file. Reusable for any number of images, by one thread at a time.
class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;

  /// Reads the header of `file`, which must stay valid until decode() returns. Allocates nothing by
  /// the sizes that it states.
  virtual std::optional<Rejection> open(std::span<const std::byte> file, ImageHeader& header) = 0;

  /// Passes the rows of `region` to `sink`. Rejects a file that ends early or is broken, even
  /// outside the region if that is cheap to detect. REQUIRES: open() accepted the file; the region
  /// is not empty and inside the image.
  virtual std::optional<Rejection> decode(const Region& region, RowSink& sink) = 0;

  /// Whether the last image had damage that Pillow and this decoder tolerate.
  [[nodiscard]] virtual bool warned() const = 0;
};

}  // namespace precache
