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

/// What is asked of reformat(); whatever is not asked for stays as it is.
struct ReformatOptions {
  /// A dataset folder, a shard or a pattern of them, as Dataset::open takes it.
  std::filesystem::path shards;
  std::filesystem::path out;
  /// One split of a dataset; none: all. Of shards without a manifest, the split's name in OUT;
  /// none: `train`.
  std::optional<std::string> split;
  /// What of shards without a manifest is the image and what the label, as OpenOptions has them.
  /// Empty: found by their usual names.
  std::string image_key;
  std::string label_key;
  /// Samples of shards without a manifest get no labels.
  bool without_labels = false;
  std::optional<Format> format;  // none: that of the first shard
  std::optional<DType> dtype;
  std::optional<Layout> layout;
  std::optional<Normalization> normalize;
  /// About how large a shard is, and how many a split has. None of both: as many samples in each as
  /// before.
  std::optional<std::uint64_t> shard_size_bytes;
  std::optional<std::uint64_t> shard_count;
  std::optional<std::uint64_t> seed;  // shuffles; none: the order is kept

  // Below: not part of a dataset's identity, may differ when a conversion is continued.
  bool overwrite = false;
  std::filesystem::path helper;  // as OpenOptions has it
};

/// What a conversion would do. Labels are told where names of classes are missing.
struct ReformatEstimate : JobEstimate {
  Format source_format = Format::kTar;
  TensorSpec source_spec;
  std::uint64_t source_shards = 0;
  Format format = Format::kTar;
  TensorSpec spec;
  bool tensors_stay = false;  // byte for byte
};

struct ReformatReport : JobReport {
  ReformatEstimate preview;
};

/// Looks at the shards and plans, writing nothing. Throws as reformat() does.
[[nodiscard]] ReformatEstimate estimate_reformat(const ReformatOptions& options);

/// Writes tensor shards again in another format, precision, layout, order or size; continues where
/// an earlier, equal call stopped.
///
/// Of a dataset with a manifest, the shards are those that build() would have made with these
/// options from the images, byte for byte, and what is read is checked against the manifest's
/// CRCs. Runs in the caller's TBB arena. Throws InvalidArgument for requests that make no sense or
/// would touch another dataset, IoError when the system refuses, CorruptData when the shards are
/// damaged or change meanwhile, Unsupported when they are not tensors of one shape. Shards without
/// a manifest that have something like labels, but not one for each sample by a usual name, are
/// refused with InvalidArgument unless the options say what their labels are. What is
/// complete by then stays, and the next equal call continues from there.
[[nodiscard]] ReformatReport reformat(const ReformatOptions& options, JobProgress& progress);

}  // namespace precache
