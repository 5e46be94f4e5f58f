// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/convert/pack.hpp"
#include "precache/convert/reformat.hpp"

namespace precache {

/// Prints what a conversion would do.
void print_preview(const ConvertPreview& preview, bool json);

/// Prints what a conversion has done, and how one that is not complete can go on.
void print_report(const ConvertReport& report, const ConvertOptions& options, double seconds,
                  bool json);

/// The same for encoded images; skipped ones on stderr.
void print_preview(const RepackPreview& preview, bool json);
void print_report(const RepackReport& report, const RepackOptions& options, double seconds,
                  bool json);

}  // namespace precache
