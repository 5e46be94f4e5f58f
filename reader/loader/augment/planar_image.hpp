// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace precache {

struct ImageShape {
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool operator==(const ImageShape&) const = default;
};

/// Pixels of one image, channel by channel, rows without gaps between them.
///
/// The memory is aligned to 64 bytes, and 64 bytes after the last pixel may be read and written, so
/// that loops over whole vectors need no special end. It grows and never shrinks: an image that is
/// used again allocates nothing.
class PlanarImage {
 public:
  static constexpr std::size_t kAlignment = 64;

  PlanarImage() = default;
  PlanarImage(const PlanarImage&) = delete;
  PlanarImage& operator=(const PlanarImage&) = delete;

  /// The pixels have no particular values afterwards.
  void resize(const ImageShape& shape) {
    shape_ = shape;
    if (size() + kAlignment <= capacity_) return;
    const std::size_t capacity = (size() + 2 * kAlignment - 1) / kAlignment * kAlignment;
    pixels_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, capacity)));
    if (pixels_ == nullptr) {
      capacity_ = 0;
      throw std::bad_alloc();
    }
    capacity_ = capacity;
  }

  [[nodiscard]] const ImageShape& shape() const { return shape_; }
  [[nodiscard]] std::uint32_t channels() const { return shape_.channels; }
  [[nodiscard]] std::uint32_t height() const { return shape_.height; }
  [[nodiscard]] std::uint32_t width() const { return shape_.width; }
  [[nodiscard]] std::size_t plane_size() const { return std::size_t{shape_.height} * shape_.width; }
  [[nodiscard]] std::size_t size() const { return plane_size() * shape_.channels; }

  [[nodiscard]] std::uint8_t* plane(std::size_t channel) {
    return pixels_.get() + channel * plane_size();
  }
  [[nodiscard]] const std::uint8_t* plane(std::size_t channel) const {
    return pixels_.get() + channel * plane_size();
  }
  [[nodiscard]] std::uint8_t* row(std::size_t channel, std::size_t y) {
    return plane(channel) + y * shape_.width;
  }
  [[nodiscard]] const std::uint8_t* row(std::size_t channel, std::size_t y) const {
    return plane(channel) + y * shape_.width;
  }
  void swap(PlanarImage& other) noexcept {
    std::swap(shape_, other.shape_);
    std::swap(capacity_, other.capacity_);
    std::swap(pixels_, other.pixels_);
  }

 private:
  struct Free {
    void operator()(std::uint8_t* pixels) const { std::free(pixels); }
  };
  ImageShape shape_;
  std::size_t capacity_ = 0;
  std::unique_ptr<std::uint8_t[], Free> pixels_;
};

/// The planes of a colour image, of `size` pixels each.
struct Planes {
  std::uint8_t* r;
  std::uint8_t* g;
  std::uint8_t* b;
  std::size_t size;
};

}  // namespace precache
