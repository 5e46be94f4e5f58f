// SPDX-License-Identifier: Apache-2.0
#include "convert/source/sample_splits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

/// Samples of classes of these sizes.
std::vector<ListedFile> samples_of(const std::vector<std::size_t>& classes,
                                   std::vector<std::string>& paths) {
  std::vector<ListedFile> samples;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    for (std::size_t i = 0; i < classes[label]; ++i) {
      paths.push_back(fmt::format("class{}/{:04}.jpg", label, i));
    }
  }
  std::size_t next = 0;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    for (std::size_t i = 0; i < classes[label]; ++i) {
      samples.push_back({.path = paths[next++], .label = static_cast<std::int64_t>(label)});
    }
  }
  return samples;
}

Listing listing_of(const std::vector<ListedFile>& samples) {
  Listing listing;
  for (const ListedFile& sample : samples) listing.add(sample);
  return listing;
}

std::set<std::string> paths_in(const Listing& listing, const std::vector<std::uint64_t>& samples) {
  std::set<std::string> paths;
  for (const std::uint64_t sample : samples) paths.insert(std::string(listing[sample].path));
  return paths;
}

TEST_CASE("a fraction takes its rounded share of each class", "[convert][splits]") {
  std::vector<std::string> paths;
  const Listing listing = listing_of(samples_of({100, 7, 3, 2, 1}, paths));
  const SplitSamples splits = split_by_fraction(listing, 0.2, 0);
  std::vector<std::size_t> in_val(5);
  for (const std::uint64_t sample : splits.at("val")) {
    ++in_val[static_cast<std::size_t>(listing[sample].label)];
  }
  CHECK(in_val == std::vector<std::size_t>{20, 1, 1, 0, 0});
  std::vector<std::uint64_t> all = splits.at("train");
  CHECK(std::ranges::is_sorted(all));
  all.insert(all.end(), splits.at("val").begin(), splits.at("val").end());
  std::ranges::sort(all);
  REQUIRE(all.size() == listing.size());
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == i);
}

TEST_CASE("the samples of a fraction follow from their paths and the seed", "[convert][splits]") {
  std::vector<std::string> paths;
  std::vector<ListedFile> samples = samples_of({60, 40}, paths);
  const Listing listing = listing_of(samples);
  const auto val = paths_in(listing, split_by_fraction(listing, 0.25, 7).at("val"));
  CHECK(val.size() == 25);

  std::ranges::reverse(samples);
  const Listing reversed = listing_of(samples);
  CHECK(paths_in(reversed, split_by_fraction(reversed, 0.25, 7).at("val")) == val);
  CHECK(paths_in(listing, split_by_fraction(listing, 0.25, 8).at("val")) != val);

  samples.push_back({.path = "class0/another.jpg", .label = 0});
  const Listing larger = listing_of(samples);
  const auto after = paths_in(larger, split_by_fraction(larger, 0.25, 7).at("val"));
  std::vector<std::string> moved;
  std::ranges::set_symmetric_difference(val, after, std::back_inserter(moved));
  CHECK(moved.size() <= 2);  // the new sample, and one that it replaces
}

TEST_CASE("a fraction is spread evenly over neighbouring paths", "[convert][splits]") {
  std::vector<std::string> paths;
  const Listing listing = listing_of(samples_of({10'000}, paths));
  std::vector<std::size_t> in_tenth(10);
  const SplitSamples splits = split_by_fraction(listing, 0.5, 0);
  for (const std::uint64_t sample : splits.at("val")) ++in_tenth[sample / 1000];
  // The standard deviation of each is about 15.
  for (const std::size_t count : in_tenth) CHECK((count > 425 && count < 575));
}

TEST_CASE("a fraction that leaves a split empty is refused", "[convert][splits]") {
  std::vector<std::string> paths;
  const Listing listing = listing_of(samples_of({4, 4}, paths));
  CHECK_THROWS_AS(split_by_fraction(listing, 0.1, 0), InvalidArgument);
  CHECK_THROWS_AS(split_by_fraction(listing, 0.9, 0), InvalidArgument);
  CHECK(split_by_fraction(listing, 0.125, 0).at("val").size() == 2);
}

TEST_CASE("a split file names the split of each sample", "[convert][splits]") {
  const test::TempFolder folder;
  std::vector<std::string> paths;
  const Listing listing = listing_of(samples_of({2, 2}, paths));
  const auto split = [&](const std::string& text) {
    test::write_text(folder / "splits.csv", text);
    return SplitFile(folder / "splits.csv", "/images").split(listing);
  };
  const SplitSamples expected{{"test", {0, 3}}, {"train", {1, 2}}};
  CHECK(split("class0/0000.jpg,test\nclass0/0001.jpg,train\nclass1/0000.jpg,train\n"
              "class1/0001.jpg,test\n") == expected);
  CHECK(split("path,split\r\n/images/class0/0000.jpg,test\r\n*,train\r\nclass1/0001.jpg,test") ==
        expected);
  CHECK(split("split,weight,path\ntest,1,class0/0000.jpg\ntest,2,./class1/0001.jpg\ntrain,3,*") ==
        expected);
  for (const char* wrong :
       {"", "path,split\n", "class0/0000.jpg,a\n", "class0/0000.jpg,a\nclass0/0000.jpg,b\n*,c\n",
        "*,a\n*,b\n", "*,a\nnope.jpg,b\n", "*,a\nclass0/0000.jpg,\n", "*,a\n../x.jpg,b\n",
        "a,b,c\n", "class0/0000.jpg\n",
        "class0/0000.jpg,a\nclass0/0001.jpg,a\nclass1/0000.jpg,a\nclass1/0001.jpg,a\n*,b\n"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(split(wrong), InvalidArgument);
  }
}

}  // namespace
}  // namespace precache
