// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "precache/convert/job.hpp"
#include "precache/formats/normalization.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// The options of reformat(). Without an option, that property stays as it is.
struct ReformatOptions {
  /// A dataset folder, a shard or a pattern of them, as Dataset::open takes it.
  std::filesystem::path shards;
  std::filesystem::path out;
  /// One split of a dataset; none: all. For shards without a manifest, the name of the split in
  /// OUT; none: `train`.
  std::optional<std::string> split;
  /// The names of image and label in shards without a manifest, as in OpenOptions. Empty: found by
  /// their usual names.
  std::string image_key;
  std::string label_key;
  /// Samples of shards without a manifest get no labels.
  bool without_labels = false;
  std::optional<Format> format;  // none: that of the first shard
  std::optional<DType> dtype;
  std::optional<Layout> layout;
  std::optional<Normalization> normalize;
  /// About how large a shard is, or how many shards a split has. Without both, shards keep their
  /// number of samples.
  std::optional<std::uint64_t> shard_size_bytes;
  std::optional<std::uint64_t> shard_count;
  std::optional<std::uint64_t> seed;  // shuffles; none: the order is kept

  // Not part of a dataset's identity; may differ when a conversion is continued:
  bool overwrite = false;
  std::filesystem::path helper;  // as in OpenOptions
};

/// The plan of a conversion.
struct ReformatEstimate : JobEstimate {
  Format source_format = Format::kTar;
  TensorSpec source_spec;
  std::uint64_t source_shards = 0;
  Format format = Format::kTar;
  TensorSpec spec;
  bool tensors_stay = false;  // they are copied byte for byte
};

struct ReformatReport : JobReport {
  ReformatEstimate estimate;
};

/// Reads the shards' metadata and plans. Writes nothing. Throws as reformat() does.
[[nodiscard]] ReformatEstimate estimate_reformat(const ReformatOptions& options);

/// Writes tensor shards again in another format, precision, layout, order or size; continues where
/// an earlier, equal call stopped.
///
/// If the shards have a manifest, the result is what build() would have made from the images with
/// these options, byte for byte, and the shards are checked against the manifest's CRCs. If they
/// have none and it is unclear what their labels are, they are refused with InvalidArgument unless
/// the options name the labels.
///
/// Runs in the caller's TBB arena. Throws InvalidArgument for wrong requests, and for those that
/// would touch another dataset, IoError when the system refuses, CorruptData when the shards are
/// damaged or change meanwhile, Unsupported when they are not tensors of one shape. Complete shards
/// stay, and the next equal call continues from there.
[[nodiscard]] ReformatReport reformat(const ReformatOptions& options, JobProgress& progress);

}  // namespace precache
