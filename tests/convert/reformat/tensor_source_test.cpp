// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/tensor_source.hpp"

#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("names in third-party shards become paths below the folder",
          "[convert][tensor_source][malformed]") {
  const std::vector<std::pair<std::string, std::string>> table{
      {"dog/1", "dog/1.npy"},
      {"/etc/passwd", "etc/passwd.npy"},
      {"../../x", "x.npy"},
      {"a/./b/../c", "a/b/c.npy"},
      {"n01440764_10026.JPEG", "n01440764_10026.npy"},
      {".jpg", ".jpg.npy"},
      {std::string("a\0b\n", 4), "a%00b%0A.npy"},
      {"", "00000042.npy"},
      {"///..", "00000042.npy"},
      {std::string(5000, 'x'), "00000042.npy"}};
  for (const auto& [key, path] : table) {
    CAPTURE(key);
    CHECK(third_party_path(key, 42) == path);
  }
}

}  // namespace
}  // namespace precache
