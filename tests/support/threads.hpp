// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <thread>
#include <vector>

namespace precache::test {

/// Calls `work(0)` to `work(count - 1)` at once, each on its own thread, which ThreadSanitizer
/// understands; it does not see how tasks of TBB wait for each other.
template <typename Work>
void on_threads(std::size_t count, const Work& work) {
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace precache::test
