// SPDX-License-Identifier: Apache-2.0
#pragma once

// Some kernels are compiled for it too.
#ifndef HWY_WANT_AVX3_DL
#define HWY_WANT_AVX3_DL
#endif
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstddef>
#include <cstdint>
#include <set>

#include "tests/support/catch.hpp"

namespace precache::test {

/// Runs `check` once for every instruction set that the machine has and the kernels were compiled
/// for.
template <typename Check>
void on_every_target(const Check& check) {
  hwy::SetSupportedTargetsForTest(0);
  const auto targets = hwy::SupportedAndGeneratedTargets();
  REQUIRE(!targets.empty());
  std::set<std::size_t> chosen;
  for (const std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    CAPTURE(hwy::TargetName(target));
    REQUIRE(chosen.insert(hwy::GetChosenTarget().GetIndex()).second);
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace precache::test
