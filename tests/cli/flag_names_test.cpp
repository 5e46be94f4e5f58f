// SPDX-License-Identifier: Apache-2.0
#include "cli/flag_names.hpp"

#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("fields in backquotes become flags", "[cli]") {
  CHECK(with_flags("`shard_size` must be at least 1 byte, got 0") ==
        "--shard-size must be at least 1 byte, got 0");
  CHECK(with_flags("set `overwrite`") == "set --overwrite");
  CHECK(with_flags("`a_b` and `c`") == "--a-b and --c");
}

TEST_CASE("positional arguments and fields with another flag are named as the help does", "[cli]") {
  CHECK(with_flags("`source` and `out`, `shards`, `paths`, `path`") ==
        "SOURCE and OUT, SHARDS, PATHS, PATH");
  CHECK(with_flags("`max_bad_percent`, `shard_size_bytes`, `shard_count`") ==
        "--max-bad, --shard-size, --shards");
  CHECK(with_flags("`pin_shards_up_to_bytes`, `resident_up_to_bytes`") ==
        "--pin-shards-up-to, --resident-up-to");
}

TEST_CASE("other text in backquotes stays as it is", "[cli]") {
  for (const char* text :
       {"", "plain", "one ` alone", "``", "`Not A Field`", "'a`B`c.jpg'", "`shard_size", "`15`"}) {
    CHECK(with_flags(text) == text);
  }
  CHECK(with_flags("a ` b `size`") == "a ` b --size");
}

}  // namespace
}  // namespace precache
