// SPDX-License-Identifier: Apache-2.0
// Bytes as lanes of 32 bits. Included once per instruction set.
#if defined(PRECACHE_BYTE_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PRECACHE_BYTE_LANES_INL
#undef PRECACHE_BYTE_LANES_INL
#else
#define PRECACHE_BYTE_LANES_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace precache::augment::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DFloat = hn::ScalableTag<float>;
using DInt = hn::Rebind<std::int32_t, DFloat>;
using DByte = hn::Rebind<std::uint8_t, DFloat>;
using VFloat = hn::Vec<DFloat>;
using VInt = hn::Vec<DInt>;

HWY_INLINE VInt load_ints(const std::uint8_t* bytes) {
  return hn::PromoteTo(DInt(), hn::LoadU(DByte(), bytes));
}

HWY_INLINE void store_ints(VInt values, std::uint8_t* bytes) {
  hn::StoreU(hn::DemoteTo(DByte(), values), DByte(), bytes);  // clips
}

}  // namespace precache::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
