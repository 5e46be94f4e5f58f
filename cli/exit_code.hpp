// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace precache {

/// What the shell sees. Scripts depend on these numbers.
enum class ExitCode {
  kDone = 0,
  kTooManyBad = 1,
  kUsage = 2,
  kSystem = 3,
  kCorrupt = 4,
  kUnsupported = 5,
  kDevice = 6,
};

}  // namespace precache
