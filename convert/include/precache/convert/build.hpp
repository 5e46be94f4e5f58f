// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "precache/convert/job.hpp"
#include "precache/convert/sidecars.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/formats/recipe.hpp"

namespace precache {

/// The limit above which Pillow refuses an image as a decompression bomb.
inline constexpr std::uint64_t kDefaultMaxPixels = 178'956'970;

struct BuildOptions : ImageJobOptions {
  Recipe recipe;
  /// Makes two splits of the source, `train` and `val`, in one job: val gets this share of each
  /// class, rounded to whole samples and chosen by `seed` and the paths. More than 0, less than 1.
  std::optional<double> val_fraction;
  /// Makes the splits that this CSV file names in one job. It has a line `path,split` for each
  /// sample; the path `*` stands for all that are not listed.
  std::filesystem::path split_file;
  std::uint64_t seed = 0;
  bool shuffle = true;
  /// Shortens keys of more than 96 bytes, so that they fit a tar header without an extension.
  bool short_keys = false;
  std::uint64_t max_pixels = kDefaultMaxPixels;
  /// A folder with a mask for each image: a PNG file (gray of 1, 2, 4 or 8 bits, or a palette,
  /// whose indices count) at the same path below it, but for the ending. Empty: there are no masks.
  std::filesystem::path mask;
  /// With `fit` stretch: whether to store height and width of each image as column `size`.
  bool size_column = true;

  // Not part of a dataset's identity; may differ when a build is continued:
  bool fail_on_bad = false;
  double max_bad_percent = 1.0;
  JobStep step = JobStep::kWhole;
  /// Of kPart: write only the shards whose number is `index` modulo `count`. Of kPrepare: list this
  /// share of a source; a run without a share then puts all of them together.
  Share share;
  /// How many parts messages about missing shards assume; 0: as many as ran last.
  std::uint64_t parts = 0;
  /// Indexes to write next to the shards when the split is complete.
  std::vector<SidecarKind> indexes;
};

/// The plan of a build.
struct BuildEstimate : JobEstimate {
  std::vector<std::string> empty_classes;
  std::map<std::string, std::uint64_t> ignored;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t record_bytes = 0;
  std::vector<NamedColumn> columns;  // next to image, label and key
  std::string pax_key;  // the longest key, if long keys need pax headers in tar records
};

struct BuildReport : JobReport {
  BuildEstimate estimate;
  SidecarReport indexes;
};

/// Lists the source and plans. Writes nothing but plain copies of compressed shards, to the
/// system's folder for temporary files; they are removed at the end. Throws as build() does.
[[nodiscard]] BuildEstimate estimate_build(const BuildOptions& options);

/// Turns the images of a source into shards; continues where an earlier, equal call stopped.
///
/// Runs in the caller's TBB arena. Throws InvalidArgument for wrong requests, and for those that
/// would touch another dataset, IoError when the system refuses, CorruptData and Unsupported for
/// source shards. Complete shards stay, and the next equal call continues from there.
[[nodiscard]] BuildReport build(const BuildOptions& options, JobProgress& progress);

}  // namespace precache
