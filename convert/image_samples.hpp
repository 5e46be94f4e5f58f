// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "convert/samples.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/shard_reader.hpp"
#include "convert/source/source.hpp"
#include "precache/convert/recipe.hpp"

namespace precache {

/// Listed images, which a recipe turns into tensors. Borrows what it is made of.
class ImageSamples : public Samples {
 public:
  /// `root` is the folder of a source that has no shards.
  ImageSamples(const std::filesystem::path& root, const Source& source, const Keys& keys,
               const Recipe& recipe, std::uint64_t max_pixels)
      : root_(root),
        source_(source),
        shards_(source.shards),
        keys_(keys),
        recipe_(recipe),
        max_pixels_(max_pixels) {}

  [[nodiscard]] SampleName name(std::uint64_t sample) const override {
    return {keys_.key(sample), source_.listing[sample].label};
  }
  /// The path, or `shard.tar:path`.
  [[nodiscard]] std::string origin(std::uint64_t sample) const override;
  /// With the folder that it lies in, for errors.
  [[nodiscard]] std::filesystem::path full_origin(std::uint64_t sample) const;
  [[nodiscard]] std::unique_ptr<TensorMaker> tensor_maker() const override;

 private:
  const std::filesystem::path& root_;
  const Source& source_;
  mutable OpenShards shards_;
  const Keys& keys_;
  const Recipe& recipe_;
  std::uint64_t max_pixels_;
};

}  // namespace precache
