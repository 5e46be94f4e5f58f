// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

/// Turns SIGBUS on a mapped shard (its file was cut, its disk failed) into a flag.
///
/// The handler puts a page of zeros where the fault was, sets the flag of the mapping and returns,
/// so that whoever was reading goes on, and whoever looks at the flag afterwards knows that zeros
/// may have been read. Faults elsewhere go to the handler that was there before.
namespace precache::bus_fault {

/// Installs the handler if it is not the one in place: a handler that was installed over it since,
/// as by Python's faulthandler or in workers of torch, is what it passes on to from then on. The
/// fourth of them is left in place. May be called at any time, by any thread.
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
