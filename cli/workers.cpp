// SPDX-License-Identifier: Apache-2.0
#include "cli/workers.hpp"

#include <latch>
#include <thread>
#include <vector>

namespace precache {
namespace {

constexpr unsigned kOtherThreads = 2;  // one shows progress, one syncs shards

/// TBB ends the process when it cannot start a thread, so this finds out before. All threads live
/// at once, as limits count those that do.
unsigned checked_jobs(unsigned jobs) {
  std::latch end(1);
  std::vector<std::jthread> threads;
  try {
    for (unsigned i = 1; i < jobs + kOtherThreads; ++i) threads.emplace_back([&] { end.wait(); });
  } catch (...) {
    end.count_down();
    throw;
  }
  end.count_down();
  return jobs;
}

}  // namespace

Workers::Workers(unsigned jobs)
    : limit_(tbb::global_control::max_allowed_parallelism, checked_jobs(jobs)),
      arena_(static_cast<int>(jobs)) {}

}  // namespace precache
