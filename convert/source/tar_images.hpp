// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "convert/source/source.hpp"

namespace precache {

/// The images of one tar, for both ways to read it: with class folders each image is a sample, and
/// with webdataset the files whose names agree up to the first dot are one.
struct TarImages {
  /// The files of one key.
  struct Group {
    std::string label;
    int label_rank = 0;  // as in tar::GroupLabel
    bool has_long_text = false;
  };
  Listing images;                     // names without "./" and such
  std::vector<std::uint32_t> groups;  // of each image
  std::vector<Group> labels;          // by group
  std::set<std::string> folders;
  bool has_root_entry = false;  // it has an entry "./"
  bool has_arrays = false;
  /// The first group whose label is unusable, and why.
  std::optional<std::pair<std::uint32_t, std::string>> unfit_label;
  IgnoredFiles ignored;
  IgnoredFiles label_files;  // those of `ignored` that have labels
};

/// The images that tar::SampleFinder finds in one archive; `shard` is its number. Throws
/// CorruptData, and Unsupported for an image whose bytes are not in one piece.
[[nodiscard]] TarImages scan_tar_images(std::span<const std::byte> archive,
                                        const std::filesystem::path& path, std::uint32_t shard,
                                        const Labelling& labelling);

/// Makes one source of the tars, except for its shards. `root` is for messages.
[[nodiscard]] Source list_tar_images(std::vector<TarImages> tars, const std::filesystem::path& root,
                                     const Labelling& labelling);

}  // namespace precache
