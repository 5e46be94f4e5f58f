// SPDX-License-Identifier: Apache-2.0
#include "convert/job/parts.hpp"

#include "precache/convert/job_state.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

using Numbers = std::vector<std::uint64_t>;

TEST_CASE("missing shards belong to parts by their remainder", "[convert][job]") {
  CHECK(parts_of({0, 4, 5, 9}, 4) == Numbers{0, 1});
  CHECK(parts_of({7, 2}, 10) == Numbers{2, 7});
  CHECK(parts_of({3, 4, 5}, 1) == Numbers{0});
  CHECK(parts_of({}, 8).empty());
}

TEST_CASE("numbers are written as job arrays take them", "[convert][job]") {
  CHECK(ranges_text({0, 4, 7, 8, 9}) == "0,4,7-9");
  CHECK(ranges_text({0, 1, 2}) == "0-2");
  CHECK(ranges_text({5}) == "5");
  CHECK(ranges_text({1, 2, 4, 5}) == "1-2,4-5");
  CHECK(ranges_text({}).empty());
}

}  // namespace
}  // namespace precache
