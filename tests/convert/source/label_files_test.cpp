// SPDX-License-Identifier: Apache-2.0
#include "convert/source/label_files.hpp"

#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

using Row = std::tuple<std::string, std::string, std::size_t>;

std::vector<Row> rows_of(std::string_view text) {
  std::vector<Row> rows;
  const std::vector<char> exact(text.begin(),
                                text.end());  // exact size: ASan sees one byte too far
  for (auto& [path, label, line, targets] :
       parse_csv_table({exact.data(), exact.size()}, "l.csv").rows) {
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
  CHECK(rows_of(" a b , 1 ") == Rows{{"a b", "1", 1}});
  CHECK(rows_of("a\rb,1\n") == Rows{{"a\rb", "1", 1}});
}

TEST_CASE("a csv header and a byte order mark are skipped", "[convert][csv]") {
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

TEST_CASE("csv columns with a type are targets", "[convert][csv]") {
  using Kind = CsvTarget::Kind;
  const CsvTable table = parse_csv_table(
      "age:float,path,note,box:int[4],label,tags:multi\n1,a,x,1 2 3 4,cat,\n2,b,,5 6 7 8,dog,u;v\n",
      "x.csv");
  REQUIRE(table.targets.size() == 3);
  CHECK(table.targets[0].name == "age");
  CHECK(table.targets[0].kind == Kind::kFloats);
  CHECK_FALSE(table.targets[0].count);
  CHECK(table.targets[1].kind == Kind::kIntegers);
  CHECK(table.targets[1].count == 4U);
  CHECK(table.targets[2].kind == Kind::kNames);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].path == "a");
  CHECK(table.rows[0].label == "cat");
  CHECK(table.rows[0].targets == std::vector<std::string>{"1", "1 2 3 4", ""});
  CHECK(table.rows[1].targets == std::vector<std::string>{"2", "5 6 7 8", "u;v"});
  CHECK(parse_csv_table("path,age:float\na,1\n", "x.csv").rows[0].label.empty());
  // Not types, or not a header.
  for (const char* text : {"a:double,path\n", "a:float[x],path\n", "a:float[2,path\n",
                           "a:multi[2],path\n", "a.jpg,b:float\n", "a:,path\n"}) {
    CAPTURE(text);
    CHECK(parse_csv_targets(text, "x.csv").empty());
  }
  CHECK(parse_csv_targets("\nfile,x:int\n", "x.csv", {.path = "file"}).size() == 1);
  for (const char* text :
       {"path,age:float\na\n", "path,age:float\n,1\n", "path,label,age:float\na,,1\n"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_csv_table(text, "x.csv"), InvalidArgument);
  }
  CHECK_THROWS_AS(parse_csv_table("path,age:float\na,1\n", "x.csv", {.label = "class"}),
                  InvalidArgument);
}

TEST_CASE("spaces and tabs around csv fields do not count", "[convert][csv]") {
  CHECK(rows_of(" path,\tlabel \na, 1 0\t\r\n") == Rows{{"a", "1 0", 2}});
  CHECK(rows_of(" \"b \" , \" c\" \r\nd ,2") == Rows{{"b ", " c", 1}, {"d", "2", 2}});
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

TEST_CASE("named columns are found in the header and others are ignored", "[convert][csv]") {
  const auto rows = [](std::string_view text, const CsvColumns& columns) {
    std::vector<Row> all;
    for (auto& [path, label, line, targets] : parse_csv_table(text, "l.csv", columns).rows) {
      all.emplace_back(path, label, line);
    }
    return all;
  };
  CHECK(rows("id,image,breed\n1,a.jpg,cat\n2,\"b,c\",dog,more\n", {"image", "breed"}) ==
        Rows{{"a.jpg", "cat", 2}, {"b,c", "dog", 3}});
  CHECK(rows("label,image\n1,a.jpg\n", {.path = "image"}) == Rows{{"a.jpg", "1", 2}});
  CHECK(rows("x,path\n1,a.jpg\n", {.label = "x"}) == Rows{{"a.jpg", "1", 2}});
  CHECK(rows("path,label\na,1\n", {"path", "label"}) == Rows{{"a", "1", 2}});
  CHECK(rows("", {"image", ""}).empty());
  const auto refused = [&](std::string_view text, const CsvColumns& columns) {
    return test::message_of<InvalidArgument>([&] { static_cast<void>(rows(text, columns)); });
  };
  CHECK_THAT(refused("\nimage,breed\n", {"file", "breed"}),
             test::contains("'l.csv' line 2: there is no column 'file'"));
  CHECK_THAT(refused("image,breed\n", {.path = "image"}),
             test::contains("there is no column 'label'"));
  CHECK_THAT(refused("a,b,label,path\n1,2,3\n", {"path", ""}),
             test::contains("line 2: the line has 3 fields"));
  CHECK_THAT(refused("a,label,path\n1,,3\n", {"path", ""}), test::contains("is empty"));
}

TEST_CASE("malformed csv rows are refused with their line", "[convert][csv][malformed]") {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"a\n", "line 1: the line has 1 field"},
           {"a,1\nb,2,3\n", "line 2: the line has 3 fields"},
           {"a,1\n\n\nb,2,\n", "line 4: the line has 3 fields"},
           {",", "line 1: the path or the label is empty"},
           {"a,\n", "line 1: the path or the label is empty"},
           {",1\n", "line 1: the path or the label is empty"},
           {"\"\",1\n", "line 1: the path or the label is empty"},
           {"a,1\n\"b,2\n", "line 2: a quote is not closed"},
           {"\"", "line 1: a quote is not closed"},
           {"\"a\"\"", "line 1: a quote is not closed"},
           {"\"a\"b,1\n", "line 1: there is text after a closing quote"},
           {"\"a\n\nb\"c,1\n", "line 3: there is text after a closing quote"},
           {"\"a\" b,1\n", "line 1: there is text after a closing quote"},
           {"a, \t\n", "line 1: the path or the label is empty"},
           {"path,label\na,1\n \n", "line 3: the line has 1 field"},
           {"\"x\ny\",1\nz\n", "line 3: the line has 1 field"}}) {
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

using Texts = std::vector<std::string>;

TEST_CASE("each line is a class name", "[convert][classes]") {
  const test::TempFolder folder;
  const auto names_of = [&](std::string_view text) {
    test::write_text(folder / "names.txt", text);
    return read_class_names(folder / "names.txt");
  };
  CHECK(names_of("cat\ndog\n") == Texts{"cat", "dog"});
  CHECK(names_of("cat\r\ndog") == Texts{"cat", "dog"});
  CHECK(names_of("zebra\n\nant, big\n") ==
        Texts{"zebra", "ant, big"});  // the file's order, not the sorted one
  CHECK(names_of("\xe7\x8c\xab\n\xff\n") == Texts{"\xe7\x8c\xab", "%FF"});
}

TEST_CASE("class names come from a manifest too", "[convert][classes]") {
  const test::TempFolder folder;
  Manifest manifest;
  manifest.classes = {"b", "a"};
  manifest.format = Format::kTar;
  manifest.spec = {DType::kUint8, Layout::kChw, 2, 2, 3};
  manifest.splits["train"].shards.push_back({"train-000000.tar", 0, 1024, 0, {}});
  test::write_text(folder / "dataset.json", manifest.to_json());
  CHECK(read_class_names(folder / "dataset.json") == Texts{"b", "a"});
  test::write_text(folder / "dataset.json", "cat\ndog\n");
  CHECK_THROWS_AS(read_class_names(folder / "dataset.json"), CorruptData);
}

TEST_CASE("missing and duplicate class names are refused", "[convert][classes][malformed]") {
  const test::TempFolder folder;
  CHECK_THROWS_AS(read_class_names(folder / "missing"), IoError);
  test::write_text(folder / "names.txt", "\n\r\n\n");
  CHECK_THAT(test::message_of<InvalidArgument>(
                 [&] { static_cast<void>(read_class_names(folder / "names.txt")); }),
             test::contains("no class names"));
  test::write_text(folder / "names.txt", "cat\ndog\ncat\n");
  CHECK_THAT(test::message_of<InvalidArgument>(
                 [&] { static_cast<void>(read_class_names(folder / "names.txt")); }),
             test::contains("'cat' twice"));
}

TEST_CASE("a byte order mark is not part of a class name", "[convert][classes]") {
  const test::TempFolder folder;
  test::write_text(folder / "names.txt",
                   "\xef\xbb\xbf"
                   "cat\ndog\n");
  CHECK(read_class_names(folder / "names.txt") == Texts{"cat", "dog"});
}

}  // namespace
}  // namespace precache
