// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "precache/formats/error.hpp"

namespace precache {

/// Whether a system error may go away: a network file system that hiccups, too many open files, too
/// little memory at the moment.
[[nodiscard]] bool may_pass(int code);

/// Waits before the attempt after number `attempt`; false if there are no more attempts.
[[nodiscard]] bool pause_before_retry(std::size_t attempt);

/// Calls `action`. If it throws an IoError that may pass, tries again a few times, with pauses.
template <typename Action>
auto with_retries(const Action& action) {
  for (std::size_t attempt = 0;; ++attempt) {
    try {
      return action();
    } catch (const IoError& error) {
      if (!may_pass(error.code()) || !pause_before_retry(attempt)) throw;
    }
  }
}

}  // namespace precache
