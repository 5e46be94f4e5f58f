// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/permutation.hpp"

#include <cmath>
#include <set>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/statistics.hpp"

namespace precache {
namespace {

using test::deviation;
using test::is_bijection;

std::vector<std::uint64_t> all_of(std::uint64_t size, std::uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < size; ++i) values.push_back(permutation(i));
  return values;
}

TEST_CASE("a permutation of every size up to 2000 is a bijection", "[formats][permutation]") {
  for (std::uint64_t size = 1; size <= 2000; ++size) {
    CAPTURE(size);
    REQUIRE(is_bijection(all_of(size, size * 0x9e3779b97f4a7c15U)));
  }
}

TEST_CASE("a permutation of a size at or next to a power of two is a bijection",
          "[formats][permutation]") {
  for (const std::uint64_t power : {4096U, 32768U, 131072U}) {
    for (const std::uint64_t size : {power - 1, power, power + 1}) {
      CAPTURE(size);
      CHECK(is_bijection(all_of(size, 17)));
    }
  }
}

TEST_CASE("position_of is the inverse of a permutation", "[formats][permutation]") {
  const auto is_inverse = [](std::uint64_t size, std::uint64_t key, std::uint64_t first,
                             std::uint64_t count) {
    const Permutation permutation(size, key);
    for (std::uint64_t i = first; i < first + count; ++i) {
      if (permutation.position_of(permutation(i)) != i) return false;
      if (permutation(permutation.position_of(i)) != i) return false;
    }
    return true;
  };
  for (std::uint64_t size = 1; size <= 700; ++size) {
    CAPTURE(size);
    REQUIRE(is_inverse(size, size * 0x9e3779b97f4a7c15U, 0, size));
  }
  for (int bit = 10; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (const std::uint64_t size : {power - 1, power, power + 1}) {
      CAPTURE(size);
      CHECK(is_inverse(size, 17, 0, 300));
      CHECK(is_inverse(size, 18, size / 2, 300));
      CHECK(is_inverse(size, 19, size - 300, 300));
    }
  }
  CHECK(is_inverse(UINT64_MAX, 20, UINT64_MAX - 300, 300));
}

TEST_CASE("a large permutation stays in its range and repeats nothing", "[formats][permutation]") {
  for (const std::uint64_t size :
       {(std::uint64_t{1} << 32) - 1, std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1,
        (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) + 1,
        UINT64_MAX}) {
    CAPTURE(size);
    const Permutation permutation(size, 99);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      seen.insert(permutation(i));
      seen.insert(permutation(size - 1 - i));
    }
    CHECK(seen.size() == 4000);
    CHECK(*seen.rbegin() < size);
    // The values spread over the whole range: the chance to miss a tenth at either end is below
    // 10^-180.
    CHECK(*seen.begin() < size / 10);
    CHECK(*seen.rbegin() > size / 10 * 9);
  }
}

TEST_CASE("a permutation is frozen", "[formats][permutation][golden]") {
  // From an implementation in another language, written from the definition.
  using Values = std::vector<std::uint64_t>;
  CHECK(all_of(1, 0) == Values{0});
  CHECK(all_of(2, 1) == Values{1, 0});
  CHECK(all_of(3, 7) == Values{0, 1, 2});
  CHECK(all_of(10, 0) == Values{7, 5, 1, 8, 6, 3, 4, 0, 9, 2});
  CHECK(all_of(10, 1) == Values{3, 9, 4, 0, 7, 8, 1, 2, 5, 6});
  CHECK(all_of(10, UINT64_MAX) == Values{9, 1, 4, 8, 0, 3, 2, 7, 6, 5});
  struct Golden {
    std::uint64_t size, key, position, value;
  };
  const std::uint64_t huge = (std::uint64_t{1} << 63) + 12345;
  for (const auto& [size, key, position, value] : std::initializer_list<Golden>{
           {1000, 0, 0, 751},
           {1000, 0, 1, 370},
           {1000, 0, 2, 638},
           {1000, 0, 999, 995},
           {1281167, 0, 0, 19441},
           {1281167, 0, 1, 69810},
           {1281167, 0, 2, 871962},
           {1281167, 0, 1281166, 453662},
           {1281167, 42, 0, 249676},
           {1281167, 42, 640583, 615087},
           {1281167, 42, 1281166, 422461},
           {0x100000000, 5, 0, 2213177138},
           {0x100000000, 5, 0x80000000, 1349535541},
           {0x100000000, 5, 0xffffffff, 3879211731},
           {0x100000001, 5, 0, 3215728142},
           {0x100000001, 5, 0x100000000, 3997834493},
           {huge, UINT64_MAX, 0, 0x3fd38944616ffa50},
           {huge, UINT64_MAX, 1, 0x646c01d3cb96b59a},
           {huge, UINT64_MAX, 0x4000000000000000, 0x34bb26fbee7c33a8},
           {huge, UINT64_MAX, 0x8000000000000000, 0x65abeae81c01e60b},
           {UINT64_MAX, 123456789, 0, 0xe47dff97cd9311b3},
           {UINT64_MAX, 123456789, 0x8000000000000000, 0xb3c8abd507273a2d},
           {UINT64_MAX, 123456789, 0xfffffffffffffffe, 0x1fdf0cd218012eff}}) {
    CAPTURE(size, key, position);
    CHECK(Permutation(size, key)(position) == value);
  }
}

TEST_CASE("permutations of different keys differ and none is the identity",
          "[formats][permutation]") {
  std::vector<std::uint64_t> identity(100);
  for (std::size_t i = 0; i < identity.size(); ++i) identity[i] = i;
  std::set<std::vector<std::uint64_t>> seen{identity};
  for (std::uint64_t key = 0; key < 1000; ++key) seen.insert(all_of(100, key));
  for (int bit = 10; bit < 64; ++bit) seen.insert(all_of(100, std::uint64_t{1} << bit));
  CHECK(seen.size() == 1 + 1000 + 54);
}

TEST_CASE("every element gets to every place equally often", "[formats][permutation]") {
  for (const std::uint64_t size : {3U, 10U, 17U, 64U, 100U, 1000U}) {
    for (const std::uint64_t element : {std::uint64_t{0}, size / 2, size - 1}) {
      std::vector<std::uint64_t> counts(size);
      const std::uint64_t keys = size * 100;
      for (std::uint64_t key = 0; key < keys; ++key) ++counts[Permutation(size, key)(element)];
      CAPTURE(size, element);
      CHECK(std::abs(deviation(counts, 100)) < 5);
    }
  }
}

TEST_CASE("a permutation separates neighbours", "[formats][permutation]") {
  // The distance between the images of two neighbours has 999 equally likely values modulo 1000.
  constexpr std::uint64_t kSize = 1000;
  std::vector<std::uint64_t> over_keys(kSize - 1);
  for (std::uint64_t key = 0; key < (kSize - 1) * 100; ++key) {
    const Permutation permutation(kSize, key);
    ++over_keys[(permutation(1) + kSize - permutation(0)) % kSize - 1];
  }
  CHECK(std::abs(deviation(over_keys, 100)) < 5);

  // Within one large permutation, with distances in 256 classes.
  constexpr std::uint64_t kLarge = 1'000'003;
  const Permutation permutation(kLarge, 2024);
  std::vector<std::uint64_t> within(256);
  std::uint64_t still_neighbours = 0;
  for (std::uint64_t i = 0; i + 1 < 256'001; ++i) {
    const std::uint64_t distance = (permutation(i + 1) + kLarge - permutation(i)) % kLarge;
    ++within[distance * 256 / kLarge];
    still_neighbours += distance == 1 || distance == kLarge - 1;
  }
  CHECK(std::abs(deviation(within, 1000)) < 5);
  CHECK(still_neighbours < 10);  // one in two is expected
}

TEST_CASE("a permutation leaves elements in place as often as chance does",
          "[formats][permutation]") {
  std::uint64_t fixed = 0;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    const Permutation permutation(500, key);
    for (std::uint64_t i = 0; i < 500; ++i) fixed += permutation(i) == i;
  }
  CHECK(fixed > 850);  // 1000 on average, with a deviation of 32
  CHECK(fixed < 1150);
}

}  // namespace
}  // namespace precache
