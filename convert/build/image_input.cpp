// SPDX-License-Identifier: Apache-2.0
#include "convert/build/image_input.hpp"

#include <cerrno>
#include <new>

#include "convert/image/transform/image_transform.hpp"
#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

class ImageMaker : public TensorMaker {
 public:
  ImageMaker(const InputFiles& samples, const Recipe& recipe, std::uint64_t max_pixels)
      : samples_(samples),
        source_(samples.source()),
        reader_(samples.reader()),
        transform_(recipe, max_pixels) {}

  std::optional<Rejection> make(std::uint64_t sample, std::span<std::byte> tensor) override {
    const ListedFile listed = source_.listing[sample];
    std::span<const std::byte> bytes;
    source_crc_ = 0;
    if (auto rejection = reader_->read(listed, bytes)) return rejection;
    source_crc_ = crc32c::value(bytes);
    try {
      if (!source_.shards.empty()) {
        const SampleForm& form = source_.shards[listed.shard].form;
        if (form.kind == SampleForm::Kind::kArray) return transform_.run(bytes, form.array, tensor);
      }
      return transform_.run(bytes, tensor);
    } catch (const std::bad_alloc&) {
      // The image is not at fault, but its name helps to choose a limit.
      throw IoError("not enough memory for", samples_.full_origin(sample), ENOMEM,
                    "Use fewer `jobs`, or a lower `max_pixels` to skip it.");
    }
  }

  [[nodiscard]] bool warned() const override { return transform_.warned(); }
  [[nodiscard]] std::uint32_t source_crc() const override { return source_crc_; }

 private:
  const InputFiles& samples_;
  const Source& source_;
  std::unique_ptr<SampleReader> reader_;
  ImageTransform transform_;
  std::uint32_t source_crc_ = 0;
};

}  // namespace

std::unique_ptr<TensorMaker> ImageInput::tensor_maker() const {
  return std::make_unique<ImageMaker>(samples_, recipe_, max_pixels_);
}

}  // namespace precache
