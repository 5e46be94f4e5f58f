// SPDX-License-Identifier: Apache-2.0
#include "convert/source/label_texts.hpp"

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

LabelTexts texts_of(const Texts& texts) {
  LabelTexts labels;
  for (const std::string& text : texts) labels.add(text);
  return labels;
}

std::string where(std::size_t sample) { return "sample " + std::to_string(sample); }

std::string refusal(const Texts& texts, const Texts& classes = {}) {
  return test::message_of<InvalidArgument>(
      [&] { static_cast<void>(texts_of(texts).number(classes, where)); });
}

TEST_CASE("labels that are integers are kept and names are numbered", "[convert][labels]") {
  const auto integers = texts_of({"5", "-1", "5", "9223372036854775807"}).number({}, where);
  CHECK(integers.labels == Numbers{5, -1, 5, INT64_MAX});
  CHECK(integers.classes.empty());
  const auto names = texts_of({"dog", "cat", "dog", "\xff"}).number({}, where);
  CHECK(names.labels == Numbers{2, 1, 2, 0});
  CHECK(names.classes == Texts{"%FF", "cat", "dog"});
  CHECK(texts_of({}).number({}, where).labels.empty());
}

TEST_CASE("fixed classes give the numbers of labels", "[convert][labels]") {
  CHECK(texts_of({"b", "a"}).number({"a", "c", "b"}, where).labels == Numbers{2, 0});
  CHECK(texts_of({"1", "0"}).number({"a", "b"}, where).labels == Numbers{1, 0});
  CHECK(texts_of({"1", "x"}).number({"x", "1"}, where).labels == Numbers{1, 0});
  CHECK_THAT(refusal({"a", "z"}, {"a"}), test::contains("the class 'z' is not known (sample 1)"));
  CHECK_THAT(refusal({"0", "2"}, {"a", "b"}),
             test::contains("sample 1: label 2 is not below the number of classes, 2"));
  CHECK_THAT(refusal({"-1"}, {"a", "b"}), test::contains("sample 0: label -1 is not below"));
}

TEST_CASE("names among integers are refused, with both places", "[convert][labels]") {
  CHECK_THAT(refusal({"1", "2", "dog", "1"}),
             test::contains(
                 "sample 2: labels mix names and numbers: 'dog' is a name, but sample 0 has 1"));
}

TEST_CASE("numbers are not class names unless they are fixed", "[convert][labels]") {
  for (const char* number : {"1.5", "-.5", "+1.0", "1.e3", "1e-05", "-1e5", "+3", "nan", "NaN",
                             "inf", "-inf", "1e999"}) {
    CAPTURE(number);
    CHECK_THAT(refusal({"0.5", number}), test::contains("is a number, but not a plain integer"));
    CHECK_THAT(refusal({"cat", number}), test::contains("is a number, but not a plain integer"));
  }
  CHECK_THAT(refusal({"1", "2", "2.5"}), test::contains("sample 2: the label '2.5' is a number"));
  CHECK(texts_of({"0.5", "1.5"}).number({"1.5", "0.5"}, where).labels == Numbers{1, 0});
  const Texts names{"+", "--3", "..", ".jpg", "1.2.3", "1e5x", "e.e", "in", "naan", "v0.5"};
  CHECK(texts_of(names).number({}, where).classes == names);
}

TEST_CASE("lists of labels differ from class names", "[convert][labels]") {
  for (const char* list : {"ant;red", "ant|red|big", "ant; red", "[ant]", "[]", "[1, 2]", "1 5 7",
                           "1,5", "0.5 0.25", "1, 5,"}) {
    CAPTURE(list);
    CHECK(is_label_list(list));
  }
  for (const char* name : {"", "5", "-1", "0.5", "ant", "golden retriever", "tench, Tinca tinca",
                           ";", "|", "ant;", ";ant", "[", "7 up", "1 2 three", " 5 "}) {
    CAPTURE(name);
    CHECK_FALSE(is_label_list(name));
  }
}

TEST_CASE("labels of several parts are one list", "[convert][labels]") {
  LabelTexts all = texts_of({"b", "a"});
  all.append(texts_of({"c", "b"}));
  CHECK(all.size() == 4);
  CHECK(all.number({}, where).labels == Numbers{1, 0, 2, 1});
}

}  // namespace
}  // namespace precache
