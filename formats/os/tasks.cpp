// SPDX-License-Identifier: Apache-2.0
#include "formats/os/tasks.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace precache {

void run_tasks(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& task,
               const std::atomic<bool>* stop) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  std::size_t failed = count;
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !(stop != nullptr && *stop); i = next++) {
      try {
        task(i);
      } catch (...) {
        next = count;
        const std::scoped_lock lock(mutex);
        if (i < failed) error = std::current_exception();
        failed = std::min(failed, i);
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < threads && i < count; ++i) helpers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace precache
