// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/datasets.hpp"

namespace precache::fuzz {

/// Writes two small precache shards and their manifest.
inline test::MadeDataset make_seed_dataset(const std::filesystem::path& folder, Format format) {
  return test::make_dataset(folder,
                            {.format = format, .spec = test::spec_of(4, 4, 3), .shards = {3, 2}});
}

}  // namespace precache::fuzz
