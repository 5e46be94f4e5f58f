// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/checked_math.hpp"

#include "tests/support/catch.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kMost = UINT64_MAX;

TEST_CASE("checked sums throw instead of wrapping", "[formats][checked]") {
  CHECK(checked_add(0, 0) == 0);
  CHECK(checked_add(kMost, 0) == kMost);
  CHECK(checked_add(kMost - 5, 5) == kMost);
  CHECK_THROWS_AS(checked_add(kMost, 1), InvalidArgument);
  CHECK_THROWS_AS(checked_add(kMost, kMost), InvalidArgument);
}

TEST_CASE("checked products throw instead of wrapping", "[formats][checked]") {
  CHECK(checked_mul(0, kMost) == 0);
  CHECK(checked_mul(kMost, 1) == kMost);
  CHECK(checked_mul(0xffffffffU, 0xffffffffU) == 0xfffffffe00000001U);
  CHECK(checked_mul(std::uint64_t{1} << 32, 0xffffffffU) == 0xffffffff00000000U);
  CHECK_THROWS_AS(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32), InvalidArgument);
  CHECK_THROWS_AS(checked_mul(kMost, 2), InvalidArgument);
}

TEST_CASE("round_up gives the next multiple or throws", "[formats][checked]") {
  CHECK(round_up(0, 64) == 0);
  CHECK(round_up(1, 64) == 64);
  CHECK(round_up(64, 64) == 64);
  CHECK(round_up(65, 64) == 128);
  CHECK(round_up(7, 1) == 7);
  CHECK(round_up(10, 3) == 12);
  CHECK(round_up(kMost - 63, 64) == kMost - 63);
  CHECK_THROWS_AS(round_up(kMost - 62, 64), InvalidArgument);
}

}  // namespace
}  // namespace precache
