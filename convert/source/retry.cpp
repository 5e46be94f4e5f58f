// SPDX-License-Identifier: Apache-2.0
#include "convert/source/retry.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

namespace precache {

bool may_pass(int code) {
  constexpr std::array kCodes{EIO,    ESTALE, EMFILE,    ENFILE,  ENOMEM,
                              EAGAIN, EBUSY,  ETIMEDOUT, ENOBUFS, EREMOTEIO};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

bool pause_before_retry(std::size_t attempt) {
  using std::chrono::milliseconds;
  constexpr std::array kPauses{milliseconds(20), milliseconds(200), milliseconds(1000)};
  if (attempt >= kPauses.size()) return false;
  std::this_thread::sleep_for(kPauses[attempt]);
  return true;
}

}  // namespace precache
