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
  ImageMaker(const ImageSamples& samples, const Source& source,
             std::unique_ptr<SampleReader> reader, const Recipe& recipe, std::uint64_t max_pixels)
      : samples_(samples),
        source_(source),
        reader_(std::move(reader)),
        transform_(recipe, max_pixels) {}

  std::optional<Rejection> make(std::uint64_t sample, std::span<std::byte> tensor) override {
    const ListedFile listed = source_.listing[sample];
    std::span<const std::byte> bytes;
    if (auto rejection = reader_->read(listed, bytes)) return rejection;
    try {
      if (!source_.shards.empty()) {
        const SampleForm& form = source_.shards[listed.shard].form;
        if (form.kind == SampleForm::Kind::kArray) return transform_.run(bytes, form.array, tensor);
      }
      return transform_.run(bytes, tensor);
    } catch (const std::bad_alloc&) {
      // No fault of the image, but who has to choose a limit wants its name.
      throw IoError("not enough memory for", samples_.full_origin(sample), ENOMEM,
                    "Use fewer --jobs, or a lower --max-pixels to skip it.");
    }
  }

  [[nodiscard]] bool warned() const override { return transform_.warned(); }

 private:
  const ImageSamples& samples_;
  const Source& source_;
  std::unique_ptr<SampleReader> reader_;
  ImageTransform transform_;
};

}  // namespace

std::string ImageSamples::origin(std::uint64_t sample) const {
  const ListedFile listed = source_.listing[sample];
  if (source_.shards.empty()) return std::string(listed.path);
  const std::filesystem::path& shard = source_.shards[listed.shard].given.path;
  return shard.filename().string() + ":" + std::string(listed.path);
}

std::filesystem::path ImageSamples::full_origin(std::uint64_t sample) const {
  if (source_.shards.empty()) return root_ / origin(sample);
  const ListedFile listed = source_.listing[sample];
  return source_.shards[listed.shard].given.path.parent_path() / origin(sample);
}

std::unique_ptr<TensorMaker> ImageSamples::tensor_maker() const {
  std::unique_ptr<SampleReader> reader;
  if (source_.shards.empty()) {
    reader = std::make_unique<FileReader>(root_);
  } else {
    reader = std::make_unique<ShardReader>(shards_);
  }
  return std::make_unique<ImageMaker>(*this, source_, std::move(reader), recipe_, max_pixels_);
}

}  // namespace precache
