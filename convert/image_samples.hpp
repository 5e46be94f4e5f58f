// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "convert/samples.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/listing.hpp"
#include "precache/convert/recipe.hpp"

namespace precache {

/// Listed images, which a recipe turns into tensors. Borrows what it is made of.
class ImageSamples : public Samples {
 public:
  ImageSamples(const std::filesystem::path& source, const Listing& listing, const Keys& keys,
               const Recipe& recipe, std::uint64_t max_pixels)
      : source_(source), listing_(listing), keys_(keys), recipe_(recipe), max_pixels_(max_pixels) {}

  [[nodiscard]] SampleName name(std::uint64_t sample) const override {
    return {keys_.key(sample), listing_[sample].label};
  }
  [[nodiscard]] std::string origin(std::uint64_t sample) const override {
    return std::string(listing_[sample].path);
  }
  [[nodiscard]] std::unique_ptr<TensorMaker> tensor_maker() const override;

 private:
  const std::filesystem::path& source_;
  const Listing& listing_;
  const Keys& keys_;
  const Recipe& recipe_;
  std::uint64_t max_pixels_;
};

}  // namespace precache
