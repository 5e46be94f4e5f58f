// SPDX-License-Identifier: Apache-2.0
#include "formats/os/tasks.hpp"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("every task runs once, for any number of threads", "[formats][concurrency]") {
  for (const std::size_t threads : {0, 1, 3, 100}) {
    CAPTURE(threads);
    std::vector<std::atomic<int>> calls(50);
    run_tasks(calls.size(), threads, [&](std::size_t i) { ++calls[i]; });
    for (const auto& count : calls) CHECK(count == 1);
  }
  run_tasks(0, 4, [](std::size_t) { FAIL("there is no task"); });
}

TEST_CASE("tasks run at the same time", "[formats][concurrency]") {
  std::latch both(2);
  run_tasks(2, 2, [&](std::size_t) { both.arrive_and_wait(); });
  CHECK(both.try_wait());
}

TEST_CASE("a task that throws ends the run, and the error of the lowest number is thrown",
          "[formats][concurrency]") {
  std::atomic<std::size_t> calls{0};
  const auto fail_from_three = [&](std::size_t i) {
    ++calls;
    if (i >= 3) throw std::runtime_error(std::to_string(i));
  };
  CHECK_THROWS_WITH(run_tasks(1000, 1, fail_from_three), "3");
  CHECK(calls == 4);
  CHECK_THROWS_WITH(run_tasks(1000, 4, fail_from_three), "3");
  CHECK(calls < 100);
  std::latch all(3);  // all fail, the first one last
  CHECK_THROWS_WITH(run_tasks(3, 3,
                              [&](std::size_t i) {
                                all.count_down();
                                all.wait();
                                if (i == 0) std::this_thread::yield();
                                throw std::runtime_error(std::to_string(i));
                              }),
                    "0");
}

TEST_CASE("no task starts after the run was stopped", "[formats][concurrency]") {
  std::atomic<bool> stop{false};
  std::size_t calls = 0;
  run_tasks(
      10, 1,
      [&](std::size_t i) {
        ++calls;
        stop = i == 2;
      },
      &stop);
  CHECK(calls == 3);
}

}  // namespace
}  // namespace precache
