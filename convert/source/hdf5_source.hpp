// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "convert/source/source.hpp"
#include "convert/source/unpacker.hpp"
#include "formats/hdf5/helper/image_rows.hpp"

namespace precache {

/// The images of HDF5 files, one after another.
class Hdf5Images {
 public:
  /// Borrows both; `helper` is as BuildOptions has it.
  Hdf5Images(const Labelling& labelling, const std::filesystem::path& helper)
      : labelling_(labelling), helper_(helper) {}

  /// Takes the images of the next file. If they are not stored as plain rows, makes a plain copy
  /// and changes `shard` accordingly.
  void add(std::span<const std::byte> file, SourceShard& shard, Unpacker& unpacker);

  /// Makes a source of them all, with these shards. Throws InvalidArgument if labels are wanted
  /// and missing, Unsupported if floats are neither 0 to 1 nor 0 to 255.
  [[nodiscard]] Source finish(std::vector<SourceShard> shards, const std::filesystem::path& root);

 private:
  void track_max(std::span<const std::byte> bytes);
  [[nodiscard]] hdf5::ImageRows find(const SourceShard& shard) const;

  const Labelling& labelling_;
  const std::filesystem::path& helper_;
  Listing listing_;
  LabelTexts texts_;
  std::vector<std::string> classes_;
  std::uint32_t files_ = 0;
  float brightest_ = 0;  // of all floats; reading stops when the range is clear
};

}  // namespace precache
