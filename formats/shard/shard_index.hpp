// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/shard/framing.hpp"
#include "precache/formats/columns.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// Where one sample lies that no stride finds, and what was read of it on the way.
struct SampleLocation {
  std::uint64_t record = 0;  // offset in the file where its framing begins
  std::uint64_t payload = 0;
  std::uint64_t payload_bytes = 0;
  std::int64_t label = -1;
  std::uint64_t key_begin = 0;  // in ShardIndex::keys
  std::uint64_t key_bytes = 0;
  bool operator==(const SampleLocation&) const = default;
};

/// All that reading one shard takes: columns where its records are equal, a table where they are
/// not.
struct ShardIndex {
  Format format = Format::kTar;
  std::uint64_t bytes = 0;  // size of the file
  std::uint64_t samples = 0;
  /// Of every sample's payload; none where payloads are not equal tensors of a known shape.
  std::optional<TensorSpec> spec;
  /// Why there is no spec, as in "its samples are JPEG files".
  std::string obstacle;
  ShardColumns columns;                // if `places` is empty
  std::vector<SampleLocation> places;  // else one for each sample
  std::string keys;                    // the keys of `places`, one after another
  std::vector<std::string> classes;
  /// Where labels are names: these, and labels of `places` are numbers of them.
  std::vector<std::string> label_names;
  /// What some samples have in place of a label, as in "'label' has 3 values in record 0".
  std::string mismatched_labels;
  /// How many labels come from `.txt` files, and how many more of these cannot be labels.
  std::uint64_t text_labels = 0;
  std::uint64_t long_texts = 0;
  /// If no sample has a label: what there is that may be meant as one.
  std::string maybe_labels;
};

}  // namespace precache
