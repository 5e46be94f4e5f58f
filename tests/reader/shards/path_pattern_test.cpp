// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/path_pattern.hpp"

#include <cerrno>
#include <clocale>

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

using Texts = std::vector<std::string>;

Texts expanded(const std::filesystem::path& pattern) {
  Texts texts;
  for (const auto& path : expand_pattern(pattern)) texts.push_back(path.string());
  return texts;
}

/// The result of a pattern in a folder with these files.
class Folder {
 public:
  explicit Folder(const Texts& files) {
    for (const std::string& file : files) test::write_text(temp_ / file, "");
  }
  [[nodiscard]] Texts operator()(const std::string& pattern) const {
    Texts texts;
    for (const auto& path : expand_pattern(temp_ / pattern)) {
      texts.push_back(path.lexically_relative(temp_.path()).string());
    }
    return texts;
  }
  [[nodiscard]] const test::TempFolder& temp() const { return temp_; }

 private:
  test::TempFolder temp_;
};

std::string refusal(const std::filesystem::path& pattern) {
  return test::message_of<InvalidArgument>([&] { (void)expand_pattern(pattern); });
}

TEST_CASE("braces list numbers with the width of the first", "[reader][pattern]") {
  CHECK(expanded("a-{0..3}.tar") == Texts{"a-0.tar", "a-1.tar", "a-2.tar", "a-3.tar"});
  CHECK(expanded("{8..11}") == Texts{"8", "9", "10", "11"});
  CHECK(expanded("{08..11}") == Texts{"08", "09", "10", "11"});
  CHECK(expanded("{0008..9}") == Texts{"0008", "0009"});
  CHECK(expanded("{98..101}x") == Texts{"98x", "99x", "100x", "101x"});
  CHECK(expanded("x{7..7}") == Texts{"x7"});
  CHECK(expanded("{000000..000012}").size() == 13);
  CHECK(expanded("{000000..000012}").back() == "000012");
}

TEST_CASE("braces list names between commas, in this order", "[reader][pattern]") {
  CHECK(expanded("{b,a,c}.h5") == Texts{"b.h5", "a.h5", "c.h5"});
  CHECK(expanded("x{,-old}.tar") == Texts{"x.tar", "x-old.tar"});
  CHECK(expanded("{a,}") == Texts{"a", ""});
  CHECK(expanded("{train,val}-{0..1}.tar") ==
        Texts{"train-0.tar", "train-1.tar", "val-0.tar", "val-1.tar"});
  CHECK(expanded("{a,b}/{c,d}/{1..2}").size() == 8);
  CHECK(expanded("{a,b}/{c,d}/{1..2}")[5] == "b/c/2");
}

TEST_CASE("an at sign with digits lists numbers from zero", "[reader][pattern]") {
  CHECK(expanded("a@2.tar") == Texts{"a0.tar", "a1.tar", "a2.tar"});
  CHECK(expanded("a-@000012.tar") == expanded("a-{000000..000012}.tar"));
  CHECK(expanded("@1-@1") == Texts{"0-0", "0-1", "1-0", "1-1"});
  CHECK(expanded("run@2024/x@1") == Texts{"run@2024/x0", "run@2024/x1"});  // only in the name
  CHECK(expanded("me@").front() == "me@");
}

TEST_CASE("a name without pattern characters means itself, whether it exists or not",
          "[reader][pattern]") {
  CHECK(expanded("/nowhere/a.tar") == Texts{"/nowhere/a.tar"});
  CHECK(expanded("a b.tar") == Texts{"a b.tar"});
  CHECK(expanded("/nowhere/{a,b}") == Texts{"/nowhere/a", "/nowhere/b"});
}

TEST_CASE("matches are sorted by their bytes", "[reader][pattern]") {
  const Folder folder({"b.tar", "a.tar", "B.tar", "a10.tar", "a2.tar", "a-1.tar", "c.txt"});
  const Texts sorted{"B.tar", "a-1.tar", "a.tar", "a10.tar", "a2.tar", "b.tar"};
  CHECK(folder("*.tar") == sorted);
  CHECK(folder("a?.tar") == Texts{"a2.tar"});
  CHECK(folder("[ab].tar") == Texts{"a.tar", "b.tar"});
  CHECK(folder("{b,a}*.tar") == Texts{"b.tar", "a-1.tar", "a.tar", "a10.tar", "a2.tar"});
  // The order of a run must not depend on the user's locale.
  const std::string before = std::setlocale(LC_COLLATE, nullptr);
  for (const char* locale : {"en_US.UTF-8", "de_DE.UTF-8", "C.UTF-8"}) {
    if (std::setlocale(LC_COLLATE, locale) == nullptr) continue;
    CAPTURE(locale);
    CHECK(folder("*.tar") == sorted);
  }
  std::setlocale(LC_COLLATE, before.c_str());
}

TEST_CASE("matches are found in folders that match too", "[reader][pattern]") {
  const Folder folder({"x/1.tar", "y/1.tar", "y/0.tar", "z/2.h5"});
  CHECK(folder("*/*.tar") == Texts{"x/1.tar", "y/0.tar", "y/1.tar"});
  CHECK(folder("{y,x}/[0-9].tar") == Texts{"y/0.tar", "y/1.tar", "x/1.tar"});
}

TEST_CASE("a path that exists means itself, even with pattern characters", "[reader][pattern]") {
  for (const std::string file : {"a{0..3}.tar", "a@12.tar", "a{b,c}", "a[b].tar", "a*.tar", "a?",
                                 "a{.tar", "x@000001/b.tar", "a}b{c"}) {
    CAPTURE(file);
    const Folder folder({file, "a0.tar", "ab", "ab.tar", "ax"});
    CHECK(folder(file) == Texts{file});
  }
}

TEST_CASE("patterns that match nothing are refused", "[reader][pattern][malformed]") {
  const Folder folder({"a.tar"});
  const auto in_folder = [&](const std::string& pattern) {
    return refusal(folder.temp() / pattern);
  };
  CHECK_THAT(in_folder("*.h5"), test::contains("matches no file"));
  CHECK_THAT(in_folder("?.h5"), test::contains("matches no file"));
  CHECK_THAT(in_folder("nowhere/*"), test::contains("matches no file"));
  CHECK_THAT(in_folder("a.tar/*"), test::contains("matches no file"));
  CHECK_THAT(in_folder("{a,b}*.tar"), test::contains("b*.tar' matches no file"));
}

TEST_CASE("malformed lists are refused", "[reader][pattern][malformed]") {
  for (const char* pattern : {"a{0..3", "a{", "{", "{b,c", "x{0..1}{"}) {
    CAPTURE(pattern);
    CHECK_THAT(refusal(pattern), test::contains("brace that is not closed"));
  }
  for (const char* pattern :
       {"{3..2}", "{..}", "{0..}", "{..3}", "{a..b}", "{-1..3}", "{+1..3}", "{0...3}", "{0..3..2}",
        "{ 0..3}", "{0x0..0x3}", "{1.5..2}", "{0..99999999999999999999}",
        "{99999999999999999999..3}", "@99999999999999999999", "{0..1}{1..0}"}) {
    CAPTURE(pattern);
    CHECK_THAT(refusal(pattern), test::contains("range of numbers"));
  }
  for (const char* pattern : {"{}", "{a}", "x{12}y", "{a,b}{c}"}) {
    CAPTURE(pattern);
    CHECK_THAT(refusal(pattern), test::contains("not contain a list"));
  }
  for (const char* pattern : {"{a,{b,c}}", "{a,{b,c},d}", "{{a,b}}", "{{0..1},x}"}) {
    CAPTURE(pattern);
    CHECK_THAT(refusal(pattern), test::contains("braces within braces"));
  }
}

TEST_CASE("a range may end with the largest 64-bit number", "[reader][pattern]") {
  CHECK(expanded("{18446744073709551614..18446744073709551615}") ==
        Texts{"18446744073709551614", "18446744073709551615"});
}

TEST_CASE("a million names are listed and more refused", "[reader][pattern][malformed]") {
  CHECK(expand_pattern("{000000..999999}").size() == 1'000'000);
  CHECK(expand_pattern("{0..9}{0..9}{0..9}{0..9}{0..9}").size() == 100'000);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "{0..999999}";
  for (const std::string& pattern :
       {std::string("{0..1000000}"), std::string("@1000000"), std::string("@999999{a,b}"),
        std::string("{0..18446744073709551615}"), std::string("@18446744073709551615"),
        std::string("{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}{0..1}"),
        std::string("{0..999999}{0..999999}{0..999999}{0..999999}"), many}) {
    const std::string text = refusal(pattern);
    CHECK_THAT(text, test::contains("million"));
    CHECK_THAT(text, test::contains(pattern));  // and not a part of its expansion
  }
}

TEST_CASE("a folder that cannot be searched is an error that says why",
          "[reader][pattern][malformed]") {
  const Folder folder({"a.tar"});
  std::filesystem::create_symlink("loop", folder.temp() / "loop");
  try {
    (void)folder("loop/*.tar");
    FAIL_CHECK("no error was thrown");
  } catch (const IoError& error) {
    CHECK(error.code() == ELOOP);
    CHECK_THAT(error.what(), test::contains("loop/*.tar"));
  }
}

}  // namespace
}  // namespace precache
