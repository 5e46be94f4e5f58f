// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/convert/sidecars.hpp"

namespace precache {

/// As write_sidecars(), for who holds the lock of the folder already.
SidecarReport write_sidecars_unlocked(const std::filesystem::path& path,
                                      const SidecarOptions& options);

}  // namespace precache
