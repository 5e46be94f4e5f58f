// SPDX-License-Identifier: Apache-2.0
#include "convert/source/keys.hpp"

#include <set>

#include "tests/support/catch.hpp"

namespace precache {
namespace {

Listing listing_of(const std::vector<std::string>& paths) {
  Listing listing;
  for (const auto& path : paths) listing.add({path, 1, 0, 0});
  return listing;
}

std::vector<std::string> keys_of(const std::vector<std::string>& paths, bool short_keys = false) {
  const Listing listing = listing_of(paths);
  const Keys keys(listing, KeyRule::kPath, short_keys);
  std::vector<std::string> result;
  for (std::size_t i = 0; i < listing.size(); ++i) result.push_back(keys.key(i));
  return result;
}

using Texts = std::vector<std::string>;

TEST_CASE("a path gives a key that webdataset keeps whole", "[convert][keys]") {
  for (const auto& [path, key] : std::vector<std::pair<std::string, std::string>>{
           {"a.jpg", "a"},
           {"cat/a.jpg", "cat/a"},
           {"cat/a.b.jpg", "cat/a_b"},
           {"cat/a..jpg", "cat/a_"},
           {"cat/a", "cat/a"},
           {"cat.v1/a.jpg", "cat.v1/a"},  // dots of folders do no harm
           {"cat.v1/a", "cat.v1/a"},
           {".jpg", "_"},
           {"cat/.jpg", "cat/_"},
           {"cat/..jpg", "cat/_"},
           {"cat/.hidden.jpg", "cat/_hidden"},
           {"cat/a.", "cat/a"},
           {"a b/c,d.png", "a b/c,d"},
           {"cat/\xff.jpg", "cat/%FF"},
           {"\xc3(/a\xe7\x8c.jpg", "%C3(/a%E7%8C"},
           {"\xe7\x8c\xab/\xe7\x8c\xab.png", "\xe7\x8c\xab/\xe7\x8c\xab"},
           {"__x__/a.jpg", "%5F_x__/a"},
           {"____/a.jpg", "%5F___/a"},
           {"___/a.jpg", "___/a"},
           {"__x__.jpg", "__x__"},
           {"__x/a.jpg", "__x/a"},
           {"a/__x__/b.jpg", "a/__x__/b"},
           {"__x.y__/b.jpg", "%5F_x.y__/b"},
           {"a\nb/c.jpg", "a\nb/c"},
           {"a.b/c\nd\n.jpg", "a.b/c%0Ad%0A"},  // a line end and a dot before it
           {"a/b/c/d/e.f.g.JPEG", "a/b/c/d/e_f_g"}}) {
    CAPTURE(path);
    CHECK(key_of_path(path) == key);
  }
}

TEST_CASE("colliding keys get numbers in the order of the listing", "[convert][keys]") {
  CHECK(keys_of({"a.b.jpg", "a.jpg", "a.png", "a_b.jpg"}) == Texts{"a_b", "a", "a~2", "a_b~2"});
  CHECK(keys_of({"a.jpeg", "a.jpg", "a.png", "a.PNG"}) == Texts{"a", "a~2", "a~3", "a~4"});
  CHECK(keys_of({"x/a.jpg", "y/a.jpg", "a.jpg"}) == Texts{"x/a", "y/a", "a"});
  CHECK(keys_of({"%FF.jpg", "\xff.jpg"}) == Texts{"%FF", "%FF~2"});
}

TEST_CASE("a key that exists is not given a second time", "[convert][keys]") {
  CHECK(keys_of({"a.jpg", "a.png", "a~2.jpg"}) == Texts{"a", "a~3", "a~2"});
  CHECK(keys_of({"a.jpg", "a.png", "a~2.jpg", "a~2.png"}) == Texts{"a", "a~3", "a~2", "a~2~2"});
  CHECK(keys_of({"a.jpg", "a.png", "a~2.jpg", "a~3.jpg"}) == Texts{"a", "a~4", "a~2", "a~3"});
}

TEST_CASE("keys of a large listing are distinct", "[convert][keys]") {
  Texts paths;
  for (int i = 0; i < 3000; ++i) {
    const std::string stem = "c" + std::to_string(i % 7) + "/" + std::to_string(i / 21);
    paths.push_back(stem + (i % 3 == 0 ? ".jpg" : i % 3 == 1 ? ".png" : "~2.jpg"));
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  const Texts keys = keys_of(paths);
  CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == paths.size());
  CHECK(keys_of(paths) == keys);
}

TEST_CASE("key limits come from the keys that are given", "[convert][keys]") {
  Listing listing;
  listing.add({"a.jpg", 1, 0, -1});
  listing.add({"a.png", 1, 0, 41});
  listing.add({"ab.png", 1, 0, 7});
  const Keys keys(listing);
  CHECK(keys.limits().longest_key == 3);  // "a~2"
  CHECK(keys.limits().smallest_label == -1);
  CHECK(keys.limits().largest_label == 41);
  CHECK(keys.limits().all_fit_ustar);
  const Listing long_names = listing_of({std::string(120, 'x') + ".jpg"});
  CHECK_FALSE(Keys(long_names).limits().all_fit_ustar);
}

TEST_CASE("names in shards give the keys that they have there", "[convert][keys]") {
  CHECK(key_of_path("k/1.left.jpg", KeyRule::kFirstDot) == "k/1");
  CHECK(key_of_path("k.d/1.jpg", KeyRule::kFirstDot) == "k.d/1");
  CHECK(key_of_path("k/1", KeyRule::kFirstDot) == "k/1");
  CHECK(key_of_path("n01/x_1.JPEG", KeyRule::kName) == "n01/x_1");
  CHECK(key_of_path("sample.001", KeyRule::kName) == "sample_001");
  CHECK(key_of_path("", KeyRule::kName) == "_");
}

TEST_CASE("a key never leads out of a folder", "[convert][keys]") {
  CHECK(key_of_path("../../etc/x.jpg") == "%2E%2E/%2E%2E/etc/x");
  CHECK(key_of_path("a/./b/../c.jpg") == "a/%2E/b/%2E%2E/c");
  CHECK(key_of_path("//a//b.jpg") == "a/b");
  CHECK(key_of_path("/..", KeyRule::kName) == "__");
  CHECK(key_of_path("../", KeyRule::kName) == "%2E%2E/_");
  CHECK(key_of_path("..a/...b/c.jpg") == "..a/...b/c");
  CHECK(key_of_path(std::string_view("a\0b\0.jpg", 8)) == "a%00b%00");
}

TEST_CASE("short keys fit the name field of a tar header and stay distinct", "[convert][keys]") {
  const std::string deep(120, 'd');
  const std::string cat = "\xe7\x8c\xab";
  std::string cats;
  while (cats.size() < 150) cats += cat;
  const Texts paths{"cat/short.jpg",
                    std::string(96, 'a') + ".jpg",
                    std::string(97, 'a') + ".jpg",
                    deep + "/1.jpg",
                    deep + "/2.jpg",
                    "v1.5" + deep + "/1.jpg",
                    cats + "1.jpg",
                    cats + "2.jpg",
                    deep + "/same.jpg",
                    deep + "/same.png",
                    std::string(95, 'b') + ".jpg",
                    std::string(95, 'b') + ".png"};
  const Texts keys = keys_of(paths, true);
  CHECK(keys[0] == "cat/short");
  CHECK(keys[1] == std::string(96, 'a'));
  CHECK(keys[2].starts_with(std::string(87, 'a') + "~"));
  CHECK(keys[5].starts_with("v1_5ddd"));  // the folder's name has become the base name
  CHECK(keys[10] == std::string(95, 'b'));
  CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == paths.size());
  for (const auto& key : keys) {
    CAPTURE(key);
    CHECK(key.size() <= kShortKeyBytes);
    CHECK(key.find('.') == std::string::npos);
  }
  CHECK(keys_of(paths, true) == keys);
  const Listing listing = listing_of(paths);
  CHECK(Keys(listing, KeyRule::kPath, true).limits().all_fit_ustar);
  CHECK_FALSE(Keys(listing).limits().all_fit_ustar);
}

}  // namespace
}  // namespace precache
