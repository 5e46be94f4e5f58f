// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace precache {

/// Calls `task` with each number below `count`, on up to `threads` threads, of which the caller's
/// is one, and returns when all calls have returned.
///
/// A task that throws ends the run: running tasks end, no others begin, and the error of the lowest
/// number is thrown. No task begins after `stop` is set.
void run_tasks(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& task,
               const std::atomic<bool>* stop = nullptr);

}  // namespace precache
