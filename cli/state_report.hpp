// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "cli/events.hpp"

namespace precache {

/// A request of `build --status`.
struct StateRequest {
  std::filesystem::path out;
  std::string split;  // empty: a job of several splits
  std::uint64_t parts = 0;
  bool watch = false;  // until all parts are done
  double watch_seconds = 2;
  bool json = false;
};

/// Prints how far a build on several machines is. Throws as job_state() does.
ExitCode report_state(const StateRequest& request);

}  // namespace precache
