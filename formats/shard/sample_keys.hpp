// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace precache {

/// What is the image and what the label of samples that others wrote: the ending of a file in a
/// tar (for a label also `json.FIELD`), a feature of a TFRecord, a dataset of an HDF5 file.
struct SampleKeys {
  std::string image{};          // empty: found by its usual names
  std::string label{};          // the same
  bool without_labels = false;  // samples get none, whatever there is
};

}  // namespace precache
