// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace precache {

/// The parts of `count` that make these shards: sorted, each once.  REQUIRES: count != 0.
[[nodiscard]] std::vector<std::uint64_t> parts_of(const std::vector<std::uint64_t>& shards,
                                                  std::uint64_t count);

}  // namespace precache
