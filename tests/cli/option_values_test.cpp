// SPDX-License-Identifier: Apache-2.0
#include "cli/option_values.hpp"

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

namespace values = option_values;

template <typename Parse>
void check_refused(const Parse& parse, std::initializer_list<const char*> texts) {
  for (const char* text : texts) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse(text), InvalidArgument);
  }
}

TEST_CASE("sizes are one number or height by width", "[cli]") {
  using Size = std::pair<std::uint32_t, std::uint32_t>;
  CHECK(values::size("224") == Size{224, 224});
  CHECK(values::size("100x200") == Size{100, 200});
  CHECK(values::size("1x4294967295") == Size{1, 4294967295U});
  check_refused([](const std::string& text) { return values::size(text); },
                {"", "x", "0", "224x", "x224", "0x5", "5x0", "1x2x3", "-1", "+1", " 1", "1 ", "1.5",
                 "1X2", "4294967296", "a"});
}

TEST_CASE("bytes have binary and decimal units", "[cli]") {
  CHECK(values::bytes("1") == 1);
  CHECK(values::bytes("1000B") == 1000);
  CHECK(values::bytes("2K") == 2048);
  CHECK(values::bytes("2k") == 2048);
  CHECK(values::bytes("512MiB") == std::uint64_t{512} << 20);
  CHECK(values::bytes("1GB") == 1'000'000'000);
  CHECK(values::bytes("3TiB") == std::uint64_t{3} << 40);
  CHECK(values::bytes("18446744073709551615") == UINT64_MAX);
  check_refused([](const std::string& text) { return values::bytes(text); },
                {"", "0", "0MiB", "MiB", "-1", "1.5G", "1 MiB", "1Mib", "1MIB", "1X", "1KK",
                 "1GiBB", "18446744073709551616", "18446744073709551615K", "16384PiB"});
}

TEST_CASE("bytes have one unit with a prefix", "[cli]") {
  check_refused([](const std::string& text) { return values::bytes(text); }, {"1iB", "1BiB"});
  CHECK_THAT(test::message_of<InvalidArgument>(
                 [] { static_cast<void>(values::bytes("1X", "--pin-shards-up-to")); }),
             test::contains("--pin-shards-up-to must be a number of bytes, got '1X'"));
}

TEST_CASE("integers must be in their range", "[cli]") {
  CHECK(values::integer("--jobs", "1", 1, 10) == 1);
  CHECK(values::integer("--jobs", "10", 1, 10) == 10);
  CHECK(values::integer("--seed", "18446744073709551615", 0, UINT64_MAX) == UINT64_MAX);
  check_refused(
      [](const std::string& text) { return values::integer("--jobs", text, 1, 10); },
      {"", "0", "11", "-1", "+1", " 1", "1 ", "1.0", "0x1", "1e1", "one", "18446744073709551617"});
  CHECK_THAT(test::message_of<InvalidArgument>(
                 [] { static_cast<void>(values::integer("--jobs", "x", 1, 10)); }),
             test::contains("--jobs must be a whole number from 1 to 10, got 'x'"));
  CHECK(values::not_empty("--labels", "x") == "x");
  CHECK_THROWS_AS(values::not_empty("--labels", ""), InvalidArgument);
}

TEST_CASE("decimals must be in their range", "[cli]") {
  CHECK(values::decimal("--step", "0.5", 0.5, 10) == 0.5);
  CHECK(values::decimal("--step", "1e1", 0.5, 10) == 10);
  check_refused([](const std::string& text) { return values::decimal("--step", text, 0.5, 10); },
                {"", "0.4", "10.1", "-1", "+1", " 1", "1 ", "1ms", "nan", "inf", "one"});
  CHECK_THAT(test::message_of<InvalidArgument>(
                 [] { static_cast<void>(values::decimal("--step", "x", 0.5, 10)); }),
             test::contains("--step must be a number from 0.5 to 10, got 'x'"));
}

TEST_CASE("percentages are numbers from 0 to 100", "[cli]") {
  CHECK(values::percent("1%") == 1);
  CHECK(values::percent("0.05") == 0.05);
  CHECK(values::percent("0") == 0);
  CHECK(values::percent("100%") == 100);
  check_refused([](const std::string& text) { return values::percent(text); },
                {"", "%", "-1", "100.1", "1%%", "nan", "inf", "one", "1 %"});
}

TEST_CASE("parts are an index and a count", "[cli]") {
  using Part = std::pair<std::uint64_t, std::uint64_t>;
  const auto as_pair = [](const std::string& text) {
    const Share share = values::part(text, "part");
    return Part{share.index, share.count};
  };
  CHECK(as_pair("0/4") == Part{0, 4});
  CHECK(as_pair("3/4") == Part{3, 4});
  CHECK(as_pair("0/1") == Part{0, 1});
  check_refused(
      [](const std::string& text) { return values::part(text, "part"); },
      {"", "/", "1", "1/", "/2", "4/4", "5/4", "1/0", "0/0", "-1/4", "1/2/3", "a/b", "1 /2"});
}

TEST_CASE("normalisations are known by name or given as numbers", "[cli]") {
  const Normalization imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  CHECK(values::normalization("imagenet", Color::kRgb) == imagenet);
  CHECK(values::normalization("0.485,0.456,0.406/0.229,0.224,0.225", Color::kRgb) == imagenet);
  CHECK(values::normalization("0.5/0.25", Color::kRgb) ==
        Normalization{{0.5F, 0.5F, 0.5F}, {0.25F, 0.25F, 0.25F}});
  CHECK(values::normalization("0/1,2,3", Color::kRgb) == Normalization{{0, 0, 0}, {1, 2, 3}});
  CHECK(values::normalization("-1e-3/2", Color::kGray).mean[0] == -1e-3F);
  check_refused([](const std::string& text) { return values::normalization(text, Color::kRgb); },
                {"", "/", "0.5", "0.5/", "/0.5", "1,2/3", "1,2,3,4/5", "1,,3/1", "1/2/3", "nan/1",
                 "0/inf", "ImageNet", "0.5,0.5,0.5,/1"});
  check_refused([](const std::string& text) { return values::normalization(text, Color::kGray); },
                {"imagenet", "1,2,3/1", "1/1,2,3"});
}

}  // namespace
}  // namespace precache
