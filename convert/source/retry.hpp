// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "precache/formats/error.hpp"

namespace precache {

/// Whether an error of the system may pass by itself: a network file system that hiccups, too many
/// open files, too little memory for the moment.
[[nodiscard]] bool may_pass(int code);

/// Waits before the attempt that follows number `attempt`; false if there is none.
[[nodiscard]] bool pause_before_retry(std::size_t attempt);

/// Calls `action`, again after a pause while it throws an IoError that may pass, a few times.
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
