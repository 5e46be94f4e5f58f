// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/manifest_watch.hpp"

#include <cerrno>
#include <ctime>
#include <mutex>

#include "precache/formats/error.hpp"

namespace precache {

std::int64_t coarse_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

bool ManifestWatch::is_current(Ask ask, const std::function<bool()>& says_the_same) const {
  // Set before the check, so that other threads skip it; reset if the check fails.
  next_ns_.store(coarse_now_ns() + kLookEveryNs, std::memory_order_relaxed);
  const bool is_current = look(ask, says_the_same);
  if (!is_current) next_ns_.store(0, std::memory_order_relaxed);
  return is_current;
}

bool ManifestWatch::look(Ask ask, const std::function<bool()>& says_the_same) const {
  const std::optional<FileState> state = state_at(path_, ask);
  if (!state) return false;
  {
    const std::lock_guard lock(mutex_);
    if (*state == current_) return true;
    if (state == other_) return false;
  }
  bool is_same = false;
  try {
    is_same = says_the_same();  // without the lock: a manifest of many shards takes seconds
  } catch (const IoError& error) {
    if (error.code() != ENOENT) throw;
  }
  const std::lock_guard lock(mutex_);
  if (is_same) {
    current_ = *state;
  } else {
    other_ = state;
  }
  return is_same;
}

}  // namespace precache
