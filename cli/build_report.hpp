// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/events.hpp"
#include "precache/convert/build.hpp"

namespace precache {

/// Prints what a build would do.
void print_estimate(const BuildEstimate& estimate, const BuildOptions& options, bool json);

/// Prints what a build did on stdout, and the first skipped samples on stderr.
void print_report(const BuildReport& report, const BuildOptions& options, double seconds,
                  bool json);

/// Says on stderr how to continue a build that is not complete, and returns the exit code.
ExitCode conclude(const BuildReport& report, const BuildOptions& options);

}  // namespace precache
