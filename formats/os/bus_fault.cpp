// SPDX-License-Identifier: Apache-2.0
#include "formats/os/bus_fault.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <span>

#include "formats/os/fork.hpp"

namespace precache::bus_fault {

// The handler may run at any moment in any thread, so it takes no lock and frees nothing: slots
// live forever. A version number, odd while a slot changes, shows whether the values that were read
// belong together.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<std::uint32_t> version{0};
  std::atomic<std::uintptr_t> base{0};
  std::atomic<std::size_t> size{0};
  std::atomic<std::atomic<bool>*> lost{nullptr};

  void set(std::uintptr_t new_base, std::size_t new_size, std::atomic<bool>* new_lost) {
    version.fetch_add(1);
    base.store(new_base);
    size.store(new_size);
    lost.store(new_lost);
    version.fetch_add(1);
  }

  /// The flag of this slot's range if `address` lies in it.
  [[nodiscard]] std::atomic<bool>* flag_for(std::uintptr_t address) const {
    const std::uint32_t before = version.load();
    const std::uintptr_t first = base.load();
    const std::size_t bytes = size.load();
    std::atomic<bool>* const flag = lost.load();
    // A slot that is changing cannot be the one of the faulting address, whose range is in use.
    if (before % 2 != 0 || version.load() != before) return nullptr;
    return address >= first && address - first < bytes ? flag : nullptr;
  }
};

namespace {

constexpr std::size_t kSlotsPerChunk = 256;

struct Chunk {
  std::array<Slot, kSlotsPerChunk> slots;
  std::atomic<Chunk*> next{nullptr};
};

// If another handler was installed over ours, ours is installed again, over it. Each installation
// is a different function: a handler that passes the signal on to our earlier one does not get it
// back, so the chain has no cycle.
constexpr std::size_t kInstallations = 4;

Chunk first_chunk;
std::array<struct sigaction, kInstallations> previous_actions;  // set before its handler can run
std::uintptr_t page_bytes = 4096;

std::atomic<bool>* find_flag(std::uintptr_t address) {
  for (Chunk* chunk = &first_chunk; chunk != nullptr; chunk = chunk->next.load()) {
    for (const Slot& slot : chunk->slots) {
      if (std::atomic<bool>* flag = slot.flag_for(address)) return flag;
    }
  }
  return nullptr;
}

void pass_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else if (previous.sa_handler == SIG_IGN && info->si_code <= 0) {
    return;  // only a sent signal can be ignored; a fault would repeat forever
  } else {
    // With the default restored, repeating the faulting instruction or raising the signal again
    // ends the process in the usual way.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(signal, &standard, nullptr);
    if (info->si_code <= 0) ::raise(signal);
  }
}

/// Replaces only this page; the kernel merges neighbouring anonymous pages into one mapping.
bool put_zeros(std::uintptr_t page) {
  // Not through libc: interceptors of mmap, such as those of sanitizers, are not made for signal
  // handlers.
  const long result = ::syscall(SYS_mmap, page, page_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return result != -1;
}

template <std::size_t kInstallation>
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  // Not for a misaligned access, which would fault on zeros as well.
  const bool is_lost_page =
      info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR || info->si_code == BUS_MCEERR_AR;
  std::atomic<bool>* const flag = is_lost_page ? find_flag(address) : nullptr;
  // Set the flag before the page is replaced, so that no reader sees zeros without the flag.
  if (flag != nullptr) flag->store(true);
  if (flag == nullptr || !put_zeros(address / page_bytes * page_bytes)) {
    pass_on(previous_actions[kInstallation], signal, info, context);
  }
  errno = saved_errno;
}

using Handler = void (*)(int, siginfo_t*, void*);
constexpr std::array<Handler, kInstallations> kHandlers{on_bus_error<0>, on_bus_error<1>,
                                                        on_bus_error<2>, on_bus_error<3>};

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 &&
         std::ranges::find(kHandlers, action.sa_sigaction) != kHandlers.end();
}

bool is_same(const struct sigaction& one, const struct sigaction& other) {
  // sa_handler and sa_sigaction share their storage.
  return one.sa_handler == other.sa_handler &&
         (one.sa_flags & SA_SIGINFO) == (other.sa_flags & SA_SIGINFO);
}

Slot* take_slot() {
  // Where the last slot was found. Saves a walk over the slots in use.
  static std::atomic<std::size_t> hint{0};
  const std::size_t start = hint.load(std::memory_order_relaxed);
  for (Chunk* chunk = &first_chunk;; chunk = chunk->next.load()) {
    for (std::size_t i = 0; i < kSlotsPerChunk; ++i) {
      Slot& slot = chunk->slots[(start + i) % kSlotsPerChunk];
      if (!slot.taken.load(std::memory_order_relaxed) && !slot.taken.exchange(true)) {
        hint.store(start + i + 1, std::memory_order_relaxed);
        return &slot;
      }
    }
    if (chunk->next.load() == nullptr) {
      auto* fresh = new Chunk;  // never freed: the handler may be walking
      Chunk* expected = nullptr;
      if (!chunk->next.compare_exchange_strong(expected, fresh)) delete fresh;
    }
  }
}

}  // namespace

void install_handler() {
  static auto& mutex = *new ForkSafeMutex;  // never destroyed: shards may be opened until exit
  static std::size_t installed = 0;
  const std::lock_guard lock(mutex);
  struct sigaction current {};
  ::sigaction(SIGBUS, nullptr, &current);
  if (is_ours(current)) return;
  const auto known = std::span(previous_actions).first(installed);
  const auto same =
      std::ranges::find_if(known, [&](const auto& one) { return is_same(one, current); });
  const auto number = static_cast<std::size_t>(same - known.begin());
  if (number == kInstallations) return;  // another library does the same; let it win
  if (number == installed) previous_actions[installed++] = current;
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = kHandlers[number];
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

Watch::Watch(const void* base, std::size_t size, std::atomic<bool>& lost) : slot_(take_slot()) {
  slot_->set(reinterpret_cast<std::uintptr_t>(base), size, &lost);
}

Watch::~Watch() {
  slot_->set(0, 0, nullptr);
  slot_->taken.store(false);
}

}  // namespace precache::bus_fault
