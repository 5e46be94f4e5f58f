// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

/// Turns SIGBUS on a mapped shard (its file was truncated, or its disk failed) into a flag.
///
/// The handler sets the flag of the mapping, maps a page of zeros at the faulting address and
/// returns. The reading thread continues, and must check the flag afterwards: if it is set, zeros
/// may have been read. Faults elsewhere go to the handler that was installed before.
namespace precache::bus_fault {

/// Installs the handler unless it is the current one. If another handler was installed over it, as
/// Python's faulthandler and torch's workers do, faults elsewhere go to that one from then on. The
/// fourth such handler is left in place. May be called at any time, by any thread.
void install_handler();

/// While it lives, faults in [base, base + size) set `lost` instead of ending the process. Destroy
/// it before the range is unmapped.
class Watch {
 public:
  /// REQUIRES: `lost` outlives the watch.
  Watch(const void* base, std::size_t size, std::atomic<bool>& lost);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

 private:
  struct Slot* slot_;
};

}  // namespace precache::bus_fault
