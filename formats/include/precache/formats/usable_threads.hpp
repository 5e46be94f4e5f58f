// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace precache {

/// Threads that this process may run at once: by its CPU affinity and its control group's quota.
[[nodiscard]] unsigned usable_threads();

}  // namespace precache
