// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/formats/normalization.hpp"

namespace precache {

/// Throws InvalidArgument for a mean above 1 or a standard deviation above 10, which are those of
/// pixels and not of x/255.
void check_unit_range(const Normalization& normalize);

}  // namespace precache
