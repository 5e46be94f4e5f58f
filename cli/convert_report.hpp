// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/convert/pack.hpp"
#include "precache/convert/reformat.hpp"

namespace precache {

/// Prints what a conversion would do.
void print_preview(const ReformatEstimate& preview, bool json);

/// Prints what a conversion has done, and how one that is not complete can go on.
void print_report(const ReformatReport& report, const ReformatOptions& options, double seconds,
                  bool json);

/// The same for encoded images; skipped ones on stderr.
void print_preview(const PackEstimate& preview, bool json);
void print_report(const PackReport& report, const PackOptions& options, double seconds, bool json);

}  // namespace precache
