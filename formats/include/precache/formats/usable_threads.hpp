// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace precache {

/// The number of threads that this process may run at once, given its CPU affinity and the quota of
/// its control group.
[[nodiscard]] unsigned usable_threads();

}  // namespace precache
