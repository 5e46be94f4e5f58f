// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/datasets.hpp"

namespace precache::fuzz {

/// Writes two small precache shards and their manifest.
inline test::MadeDataset make_seed_dataset(const std::filesystem::path& folder, Format format) {
  return test::make_dataset(folder, {.format = format,
                                     .spec = test::spec_of(4, 4, 3),
                                     .shards = {3, 2},
                                     .columns = {{"age", ValueType::kFloat32, {}, {}},
                                                 {"tags", ValueType::kUint8, {2}, {"a", "b"}},
                                                 {"mask", ValueType::kUint8, {4, 4}, {}}}});
}

}  // namespace precache::fuzz
