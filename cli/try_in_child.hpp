// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace precache {

/// Calls in a child process, whose end is no harm. Whether the child came to its end.
///
/// REQUIRES: no other thread runs. Throws IoError if there can be no child.
[[nodiscard]] bool try_in_child(const std::function<void()>& call);

}  // namespace precache
