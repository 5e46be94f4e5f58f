// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

namespace precache {

/// The threads that work for a command; the one that calls execute() is one of them.
class Workers {
 public:
  /// Throws std::system_error if the system does not let the process have so many threads.
  explicit Workers(unsigned jobs);

  template <typename Work>
  auto execute(const Work& work) {
    return arena_.execute(work);
  }

 private:
  tbb::global_control limit_;
  tbb::task_arena arena_;
};

}  // namespace precache
