// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/convert/sidecars.hpp"

namespace precache {

/// As write_indexes(), for who holds the lock of the folder already.
IndexReport write_indexes_unlocked(const std::filesystem::path& path, const IndexOptions& options);

}  // namespace precache
