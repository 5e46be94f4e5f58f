// SPDX-License-Identifier: Apache-2.0
#include "convert/source/retry.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

namespace precache {

bool may_pass(int code) {
  switch (code) {
    case EIO:
    case ESTALE:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case EBUSY:
    case ETIMEDOUT:
    case ENOBUFS:
    case EREMOTEIO:
      return true;
    default:
      return false;
  }
}

bool pause_before_retry(std::size_t attempt) {
  using std::chrono::milliseconds;
  constexpr std::array kPauses{milliseconds(20), milliseconds(200), milliseconds(1000)};
  if (attempt >= kPauses.size()) return false;
  std::this_thread::sleep_for(kPauses[attempt]);
  return true;
}

}  // namespace precache
