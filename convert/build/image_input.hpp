// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "convert/job/record_input.hpp"
#include "convert/source/input_files.hpp"
#include "convert/source/keys.hpp"
#include "precache/formats/recipe.hpp"

namespace precache {

/// Listed images, which a recipe turns into tensors. Borrows what it is made of.
class ImageInput : public RecordInput {
 public:
  /// `root` is the folder of a source that has no shards.
  ImageInput(const std::filesystem::path& root, const Source& source, const Keys& keys,
             const Recipe& recipe, std::uint64_t max_pixels)
      : samples_(root, source), keys_(keys), recipe_(recipe), max_pixels_(max_pixels) {}

  [[nodiscard]] SampleName name(std::uint64_t sample) const override {
    return {keys_.key(sample), samples_.source().listing[sample].label};
  }
  [[nodiscard]] std::string origin(std::uint64_t sample) const override {
    return samples_.origin(sample);
  }
  [[nodiscard]] std::unique_ptr<TensorMaker> tensor_maker() const override;

 private:
  InputFiles samples_;
  const Keys& keys_;
  const Recipe& recipe_;
  std::uint64_t max_pixels_;
};

}  // namespace precache
