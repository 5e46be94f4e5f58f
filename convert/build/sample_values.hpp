// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/image/transform/mask_transform.hpp"
#include "convert/source/listing.hpp"
#include "convert/source/mask_files.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/formats/recipe.hpp"

namespace precache {

/// The values that samples of a build have next to image, label and key: the targets of a CSV file,
/// a mask, and the size of the image before it was stretched. Immutable, so any number of threads
/// may use one at once.
class SampleValues {
 public:
  /// `targets`: as Source has them. Borrows `masks`; null: there are none. They need not be listed
  /// for samples of a plan, which have a note of each after their targets.
  SampleValues(const Recipe& recipe, bool has_sizes, std::vector<NamedColumn> targets,
               const MaskFiles* masks);

  [[nodiscard]] const std::vector<NamedColumn>& columns() const { return columns_; }
  /// `of_listing`, the fingerprint of these samples, if there are neither targets nor masks; else
  /// changes with them too. Throws InvalidArgument if a sample has no mask.
  [[nodiscard]] std::string source_fingerprint(const Listing& samples,
                                               const std::string& of_listing) const;

 private:
  friend class ValueMaker;

  Recipe recipe_;
  std::vector<NamedColumn> targets_;
  std::uint64_t targets_bytes_;
  const MaskFiles* masks_;
  std::vector<NamedColumn> columns_;
};

/// Makes the values of samples. Each thread has its own.
class ValueMaker {
 public:
  ValueMaker(const SampleValues& values, std::uint64_t max_pixels);

  /// The CRC-32C of all that the source has of a sample, whose image has the CRC `image_crc` (0: it
  /// cannot be read, and so is the result); reads its mask. Throws as SampleReader::read() does.
  [[nodiscard]] std::uint32_t read(const ListedFile& sample, std::uint32_t image_crc);
  /// Writes the values of the sample that was read last.  REQUIRES: `image` is the header of its
  /// image; `to` has room for the values of all columns.
  std::optional<Rejection> write(const ListedFile& sample, const ImageHeader& image,
                                 std::span<std::byte> to);

 private:
  const SampleValues& values_;
  std::unique_ptr<SampleReader> reader_;  // of masks
  std::optional<MaskTransform> transform_;
  Mask noted_;  // of the sample that was read last
  std::optional<Rejection> unread_;
  std::span<const std::byte> mask_;
};

}  // namespace precache
