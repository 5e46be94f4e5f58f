// SPDX-License-Identifier: Apache-2.0
#include "formats/os/fork.hpp"

#include <pthread.h>

#include <atomic>
#include <unordered_set>

namespace precache {
namespace {

std::atomic<std::uint64_t> generation{0};

/// All mutexes that fork() has to wait for.
struct Registry {
  std::mutex mutex;
  std::unordered_set<ForkSafeMutex*> members;

  void lock() {
    mutex.lock();
    for (ForkSafeMutex* member : members) member->lock();
  }
  void unlock() {
    for (ForkSafeMutex* member : members) member->unlock();
    mutex.unlock();
  }
};

/// Never destroyed: a program may fork while it ends.
Registry& registry() {
  static Registry& instance = *[] {
    auto* made = new Registry;
    ::pthread_atfork([] { registry().lock(); }, [] { registry().unlock(); },
                     [] {
                       generation.fetch_add(1);
                       registry().unlock();
                     });
    return made;
  }();
  return instance;
}

}  // namespace

std::uint64_t fork_generation() { return generation.load(std::memory_order_relaxed); }

ForkSafeMutex::ForkSafeMutex() {
  const std::lock_guard lock(registry().mutex);
  registry().members.insert(this);
}

ForkSafeMutex::~ForkSafeMutex() {
  const std::lock_guard lock(registry().mutex);
  registry().members.erase(this);
}

}  // namespace precache
