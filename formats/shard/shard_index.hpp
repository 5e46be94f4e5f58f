// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/shard/framing.hpp"
#include "precache/formats/columns.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// Which part of a third-party sample is the image and which the label: the extension of a file in
/// a tar (for a label also `json.FIELD`), a feature of a TFRecord, or a dataset of an HDF5 file.
struct SampleKeys {
  std::string image{};          // empty: one of the usual names
  std::string label{};          // the same
  bool without_labels = false;  // ignore all labels
};

/// The place of one sample in a shard without a stride, with its label and key.
struct SampleLocation {
  std::uint64_t record = 0;  // offset of its first byte, framing included
  std::uint64_t payload = 0;
  std::uint64_t payload_bytes = 0;
  std::int64_t label = -1;
  std::uint64_t key_begin = 0;  // in ShardIndex::keys
  std::uint64_t key_bytes = 0;
  bool operator==(const SampleLocation&) const = default;
};

/// Everything needed to read one shard: columns if its records are equal, else a table.
struct ShardIndex {
  Format format = Format::kTar;
  std::uint64_t bytes = 0;  // size of the file
  std::uint64_t samples = 0;
  /// Of every sample's payload; none if payloads are not equal tensors of a known shape.
  std::optional<TensorSpec> spec;
  /// Why there is no spec, as in "its samples are JPEG files".
  std::string unsupported_reason;
  SharedColumns columns;               // if `places` is empty
  NamedColumns named;                  // the columns whose places are columns->named
  std::vector<SampleLocation> places;  // else one for each sample
  std::string keys;                    // the keys of `places`, one after another
  std::vector<std::string> classes;
  /// If labels are names: the names, and the labels of `places` are indexes into this list.
  std::vector<std::string> label_names;
  /// Values that some samples have instead of a label, as in "'label' has 3 values in record 0".
  std::string mismatched_labels;
  /// The number of labels from `.txt` files, and of `.txt` files that cannot be labels.
  std::uint64_t text_labels = 0;
  std::uint64_t long_texts = 0;
  /// If no sample has a label: datasets or features that may be meant as labels.
  std::string maybe_labels;
  /// Names of values next to the first sample that the index does not have.
  std::vector<std::string> left_out;
};

}  // namespace precache
