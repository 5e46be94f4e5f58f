// SPDX-License-Identifier: Apache-2.0
#include "convert/image_samples.hpp"

#include <cerrno>
#include <new>

#include "convert/source/file_reader.hpp"
#include "convert/transform/image_transform.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

class ImageMaker : public TensorMaker {
 public:
  ImageMaker(const std::filesystem::path& source, const Listing& listing, const Recipe& recipe,
             std::uint64_t max_pixels)
      : source_(source), listing_(listing), reader_(source), transform_(recipe, max_pixels) {}

  std::optional<Rejection> make(std::uint64_t sample, std::span<std::byte> tensor) override {
    const ListedFile listed = listing_[sample];
    std::span<const std::byte> bytes;
    if (auto rejection = reader_.read(listed, bytes)) return rejection;
    try {
      return transform_.run(bytes, tensor);
    } catch (const std::bad_alloc&) {
      // No fault of the image, but who has to choose a limit wants its name.
      throw IoError("not enough memory for", source_ / listed.path, ENOMEM,
                    "Use fewer --jobs, or a lower --max-pixels to skip it.");
    }
  }

  [[nodiscard]] bool warned() const override { return transform_.warned(); }

 private:
  const std::filesystem::path& source_;
  const Listing& listing_;
  FileReader reader_;
  ImageTransform transform_;
};

}  // namespace

std::unique_ptr<TensorMaker> ImageSamples::tensor_maker() const {
  return std::make_unique<ImageMaker>(source_, listing_, recipe_, max_pixels_);
}

}  // namespace precache
