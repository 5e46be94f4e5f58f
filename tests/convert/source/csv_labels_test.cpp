// SPDX-License-Identifier: Apache-2.0
#include "convert/source/csv_labels.hpp"

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

using Row = std::tuple<std::string, std::string, std::size_t>;

std::vector<Row> rows_of(std::string_view text) {
  std::vector<Row> rows;
  const std::vector<char> exact(text.begin(),
                                text.end());  // exact size: ASan sees one byte too far
  for (auto& [path, label, line] : parse_csv_labels({exact.data(), exact.size()}, "l.csv")) {
    rows.emplace_back(path, label, line);
  }
  return rows;
}

using Rows = std::vector<Row>;

TEST_CASE("csv rows are path and label with their line", "[convert][csv]") {
  CHECK(rows_of("").empty());
  CHECK(rows_of("a.jpg,cat") == Rows{{"a.jpg", "cat", 1}});
  CHECK(rows_of("a.jpg,cat\nb.jpg,dog\n") == Rows{{"a.jpg", "cat", 1}, {"b.jpg", "dog", 2}});
  CHECK(rows_of("a.jpg,cat\r\nb.jpg,dog\r\n") == Rows{{"a.jpg", "cat", 1}, {"b.jpg", "dog", 2}});
  CHECK(rows_of("\n\na,1\r\n\r\nb,2") == Rows{{"a", "1", 3}, {"b", "2", 5}});
  CHECK(rows_of(" a , 1 ") == Rows{{" a ", " 1 ", 1}});
  CHECK(rows_of("a\rb,1\n") == Rows{{"a\rb", "1", 1}});
}

TEST_CASE("a csv header and a byte order mark are passed over", "[convert][csv]") {
  CHECK(rows_of("path,label\na,1\n") == Rows{{"a", "1", 2}});
  CHECK(rows_of("\"path\",\"label\"\r\na,1\n") == Rows{{"a", "1", 2}});
  CHECK(rows_of("\xef\xbb\xbfpath,label\na,1\n") == Rows{{"a", "1", 2}});
  CHECK(rows_of("\xef\xbb\xbf"
                "a,1\n") == Rows{{"a", "1", 1}});
  CHECK(rows_of("path,label\n").empty());
  CHECK(rows_of("\npath,label\na,1\n") == Rows{{"a", "1", 3}});
  // Only the first row is a header, and only with these names.
  CHECK(rows_of("a,1\npath,label\n") == Rows{{"a", "1", 1}, {"path", "label", 2}});
  CHECK(rows_of("Path,Label\n") == Rows{{"Path", "Label", 1}});
}

TEST_CASE("quoted csv fields hold commas and quotes and line ends", "[convert][csv]") {
  CHECK(rows_of("\"a,b.jpg\",cat\n") == Rows{{"a,b.jpg", "cat", 1}});
  CHECK(rows_of("\"say \"\"hi\"\"\",\"\"\"\"\n") == Rows{{"say \"hi\"", "\"", 1}});
  CHECK(rows_of("\"a\nb\",1\nc,2\n") == Rows{{"a\nb", "1", 1}, {"c", "2", 3}});
  CHECK(rows_of("\"a\r\nb\n\nc\",1\r\nd,2\r\n") == Rows{{"a\r\nb\n\nc", "1", 1}, {"d", "2", 5}});
  CHECK(rows_of("a,\"1\"") == Rows{{"a", "1", 1}});
  CHECK(rows_of("a\"b,c\"d\"") ==
        Rows{{"a\"b", "c\"d\"", 1}});  // quotes inside a plain field are letters
}

TEST_CASE("malformed csv rows are refused with their line", "[convert][csv][malformed]") {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"a\n", "line 1: 1 fields, not two"},
           {"a,1\nb,2,3\n", "line 2: 3 fields, not two"},
           {"a,1\n\n\nb,2,\n", "line 4: 3 fields, not two"},
           {",", "line 1: an empty field"},
           {"a,\n", "line 1: an empty field"},
           {",1\n", "line 1: an empty field"},
           {"\"\",1\n", "line 1: an empty field"},
           {"a,1\n\"b,2\n", "line 2: a quote is not closed"},
           {"\"", "line 1: a quote is not closed"},
           {"\"a\"\"", "line 1: a quote is not closed"},
           {"\"a\"b,1\n", "line 1: text after a closing quote"},
           {"\"a\n\nb\"c,1\n", "line 3: text after a closing quote"},
           {"\"a\" ,1\n", "line 1: text after a closing quote"},
           {"path,label\na,1\n \n", "line 3: 1 fields, not two"},
           {"\"x\ny\",1\nz\n", "line 3: 1 fields, not two"}}) {
    CAPTURE(text);
    const std::string message =
        test::message_of<InvalidArgument>([&, &text = text] { static_cast<void>(rows_of(text)); });
    CHECK_THAT(message, test::contains("'l.csv' " + words));
  }
}

TEST_CASE("a csv file cut or changed anywhere is read or refused", "[convert][csv][malformed]") {
  const std::string whole =
      "\xef\xbb\xbfpath,label\r\n\"a,\"\"b\"\"\r\nc.jpg\",1\r\n\r\nd.jpg,\"2\"\n";
  const auto survives = [](const std::string& text) {
    try {
      static_cast<void>(rows_of(text));
    } catch (const InvalidArgument&) {
    }
    return true;
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    CHECK(survives(whole.substr(0, at)));
    CHECK(survives(whole.substr(at)));
    for (const char byte : {'"', ',', '\n', '\r', '\0', '\xff'}) {
      std::string text = whole;
      text[at] = byte;
      REQUIRE(survives(text));
    }
  }
}

TEST_CASE("a csv file of many rows is read to its end", "[convert][csv]") {
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += "folder/" + std::to_string(i) + ".jpg," + std::to_string(i % 10) + "\n";
  const auto rows = rows_of(text);
  REQUIRE(rows.size() == 20'000);
  CHECK(rows.back() == Row{"folder/19999.jpg", "9", 20'000});
}

}  // namespace
}  // namespace precache
