// SPDX-License-Identifier: Apache-2.0
#include "reader/bus_fault.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>

namespace precache::bus_fault {

// The handler may run at any moment in any thread, so it takes no lock and frees nothing: slots
// live for ever, and a version number, odd while a slot changes, tells whether what was read of it
// belongs together.
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
    // A slot that changes under our eyes is not the one of the faulting address: that range is in
    // use.
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

Chunk first_chunk;
struct sigaction previous_action;
std::uintptr_t page_bytes = 4096;

std::atomic<bool>* find_flag(std::uintptr_t address) {
  for (Chunk* chunk = &first_chunk; chunk != nullptr; chunk = chunk->next.load()) {
    for (const Slot& slot : chunk->slots) {
      if (std::atomic<bool>* flag = slot.flag_for(address)) return flag;
    }
  }
  return nullptr;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else if (previous_action.sa_handler == SIG_IGN && info->si_code <= 0) {
    return;  // only what somebody sends can be ignored; a fault would come back for ever
  } else {
    // With the default in place again the faulting instruction, or whoever sent the signal, ends
    // the process in the usual way.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(signal, &standard, nullptr);
    if (info->si_code <= 0) ::raise(signal);
  }
}

/// Replaces just this page; anonymous neighbours become one mapping in the kernel.
bool put_zeros(std::uintptr_t page) {
  // Not through libc: what intercepts mmap there, as sanitizers do, is not made for signal
  // handlers.
  const long result = ::syscall(SYS_mmap, page, page_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return result != -1;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  // Not a misaligned access, which would fault on zeros as well.
  const bool is_lost_page =
      info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR || info->si_code == BUS_MCEERR_AR;
  std::atomic<bool>* const flag = is_lost_page ? find_flag(address) : nullptr;
  // Before the page: nobody finds zeros there and the flag not set.
  if (flag != nullptr) flag->store(true);
  if (flag == nullptr || !put_zeros(address / page_bytes * page_bytes)) {
    pass_on(signal, info, context);
  }
  errno = saved_errno;
}

Slot* take_slot() {
  // Where the last slot was found; saves a walk over those in use.
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
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, nullptr, &previous_action);  // known before our handler can run
    ::sigaction(SIGBUS, &action, nullptr);
  });
}

Watch::Watch(const void* base, std::size_t size, std::atomic<bool>& lost) : slot_(take_slot()) {
  slot_->set(reinterpret_cast<std::uintptr_t>(base), size, &lost);
}

Watch::~Watch() {
  slot_->set(0, 0, nullptr);
  slot_->taken.store(false);
}

}  // namespace precache::bus_fault
