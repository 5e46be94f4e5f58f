// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "convert/job/plan.hpp"
#include "convert/reformat/tensor_conversion.hpp"
#include "convert/reformat/tensor_source.hpp"
#include "formats/shard/framing.hpp"
#include "precache/convert/reformat.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {

/// All that follows from the shards and the options, before the first tensor is read.
struct ReformatPlan {
  struct Split {
    const SourceSplit& source;
    std::unique_ptr<const Framing> framing;
    Plan plan;

    /// What the manifest will say of the split, but for names, sizes and CRCs of its shards.
    [[nodiscard]] SplitEntry planned_entry(const ReformatOptions& options) const;
  };

  /// Throws InvalidArgument if the options do not fit the shards, and what opening them throws.
  explicit ReformatPlan(const ReformatOptions& options);

  /// All that the manifest will say of the dataset but its splits.
  [[nodiscard]] Manifest dataset() const;
  [[nodiscard]] ReformatEstimate preview(const std::filesystem::path& out) const;
  /// What decides over the bytes that come out: a JSON object.
  [[nodiscard]] std::string identity(const ReformatOptions& options) const;

  TensorSource source;
  TensorConversion conversion;
  Format format;
  std::vector<Split> splits;
};

/// Whether a finished split is what was planned, as far as a plan tells.
[[nodiscard]] bool is_planned(const SplitEntry& found, const SplitEntry& planned);

}  // namespace precache
