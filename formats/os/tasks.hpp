// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace precache {

/// Calls `task` with each number below `count`, on up to `threads` threads including the caller's,
/// and returns when all calls have returned.
///
/// If a task throws, no further tasks start, and after the running ones the error of the lowest
/// number is thrown. No task starts after `stop` is set.
void run_tasks(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& task,
               const std::atomic<bool>* stop = nullptr);

}  // namespace precache
