// SPDX-License-Identifier: Apache-2.0
#include "precache/tools/measure.hpp"
#include "reader/device/device_lease.hpp"

namespace precache {

double measure_link(int, const MeasureOptions&) { throw_without_cuda(); }

}  // namespace precache
