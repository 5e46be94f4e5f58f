// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/npy_header.hpp"

#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tar_writer.hpp"

namespace precache {
namespace {

using test::bytes_of;
using test::npy_file;

npy::Header read(const std::string& file) { return npy::read_header(bytes_of(file), "a.tar", 512); }

std::string dict(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

TEST_CASE("npy headers of all versions are read", "[formats][npy]") {
  const std::string text = dict("'<f4'", "(3, 2, 5)");
  for (const int version : {1, 2, 3}) {
    std::string file = "\x93NUMPY" + std::string{static_cast<char>(version), '\0'};
    file += static_cast<char>(text.size());
    file += std::string(version == 1 ? 1 : 3, '\0');
    const std::size_t begin = file.size() + text.size();
    file += text + std::string(120 + 7, '\0');  // bytes after the array do not belong to it
    const npy::Header header = read(file);
    CHECK(header.descr == "<f4");
    CHECK_FALSE(header.fortran_order);
    CHECK(header.shape == std::vector<std::uint64_t>{3, 2, 5});
    CHECK(header.header_bytes == begin);
    CHECK(header.array_bytes == 120);
    CHECK(npy::guess_spec(header).spec == TensorSpec{DType::kFloat32, Layout::kChw, 2, 5, 3});
  }
}

TEST_CASE("npy headers may be formatted differently", "[formats][npy]") {
  CHECK(read(npy_file("{\"shape\":(2,3),\"descr\":\"|u1\",\"fortran_order\":True}", 6))
            .fortran_order);
  CHECK(read(npy_file(dict("'|u1'", "(2L, 3L)"), 6)).array_bytes == 6);  // Python 2
  CHECK(read(npy_file(dict("'|u1'", "()"), 1)).array_bytes == 1);
  CHECK(read(npy_file(dict("'|u1'", "(4,)"), 4)).array_bytes == 4);
  CHECK(read(npy_file(dict("'<U3'", "(4,)"), 48)).array_bytes == 48);
  CHECK(read(npy_file(dict("'<M8[ns]'", "(4,)"), 32)).array_bytes == 32);
  CHECK(read(npy_file(dict("'|O'", "(4,)"), 99)).array_bytes == 99);
  const npy::Header records =
      read(npy_file(dict("[('a', '<f4'), ('b', '|u1', (2, 2))]", "(4,)"), 32));
  CHECK(records.descr.empty());
  CHECK(records.array_bytes == 32);
  CHECK(npy::guess_spec(records).unsupported_reason == "its arrays hold records");
}

TEST_CASE("npy arrays of suitable type and shape are images", "[formats][npy]") {
  const auto guess = [](const std::string& descr, std::vector<std::uint64_t> shape,
                        bool fortran = false) {
    return npy::guess_spec({descr, fortran, std::move(shape), 128, 0});
  };
  const auto spec = [](DType dtype, Layout layout, std::uint32_t h, std::uint32_t w,
                       std::uint32_t c) {
    return TensorSpec{dtype, layout, h, w, c};
  };
  CHECK(guess("|u1", {3, 8, 9}).spec == spec(DType::kUint8, Layout::kChw, 8, 9, 3));
  CHECK(guess("<f2", {8, 9, 4}).spec == spec(DType::kFloat16, Layout::kHwc, 8, 9, 4));
  CHECK(guess("<f4", {1, 9, 1}).spec == spec(DType::kFloat32, Layout::kChw, 9, 1, 1));
  CHECK(guess("|u1", {8, 9}).spec == spec(DType::kUint8, Layout::kChw, 8, 9, 1));
  CHECK_THAT(guess("<u2", {3, 8, 9}).unsupported_reason,
             test::contains("only dataset.json says which"));
  CHECK_THAT(guess("<f8", {3, 8, 9}).unsupported_reason, test::contains("'<f8'"));
  CHECK_THAT(guess(">f4", {3, 8, 9}).unsupported_reason, test::contains("'>f4'"));
  CHECK_THAT(guess("|u1", {3, 8, 9}, true).unsupported_reason, test::contains("Fortran"));
  for (const std::vector<std::uint64_t>& shape : std::vector<std::vector<std::uint64_t>>{
           {}, {7}, {5, 6, 7}, {1, 3, 8, 9}, {3, 0, 9}, {0, 9}, {3, 8, std::uint64_t{1} << 32}}) {
    CHECK_FALSE(guess("|u1", shape).spec);
    CHECK_THAT(guess("|u1", shape).unsupported_reason, test::contains("shape"));
  }
}

TEST_CASE("malformed npy headers are refused with the offset of the fault",
          "[formats][npy][malformed]") {
  struct Case {
    std::string file;
    std::uint64_t offset;
    std::string words;
  };
  const std::string max = "18446744073709551615";
  for (const auto& [file, offset, words] : {
           Case{"", 512, "not a NumPy array"},
           Case{"\x93NUMPZ\x01", 512, "not a NumPy array"},
           Case{std::string("\x93NUMPY\x01\0\x10", 9), 512, "truncated"},
           Case{npy_file("", 0), 522, "malformed"},
           Case{npy_file("{", 0), 523, "a string is missing"},
           Case{npy_file("{}", 0), 524, "must have the keys"},
           Case{npy_file("{'descr': '|u1', 'descr': '|u1'}", 0), 547, "repeated key"},
           Case{npy_file("{'other': 1}", 0), 531, "unknown or repeated key"},
           Case{npy_file(dict("'|u1'", "(2, 3)") + "x", 6), 522 + 60, "after its dictionary"},
           Case{npy_file(dict("'|u1'", "(2)"), 6), 522 + 52, "not a tuple"},
           Case{npy_file(dict("'|u1'", "(-2, 3)"), 6), 522 + 51, "not a 64-bit number"},
           Case{npy_file(dict("'|u1'", "(1" + max + ", 3)"), 6), 522 + 51, "not a 64-bit number"},
           Case{npy_file(dict("'|u1'", "2, 3"), 6), 522 + 50, "malformed"},
           Case{npy_file(dict("'|u1'", "(2, 3)", "0"), 6), 522 + 34, "fortran_order"},
           Case{npy_file(dict("'|u\\x31'", "(2, 3)"), 6), 522 + 10, "backslash"},
           Case{npy_file(dict("[[[[[[[[[[1]]]]]]]]]]", "(2, 3)"), 6), 522 + 18, "deeply"},
           Case{npy_file("{'descr': [", 0), 533, "does not end"},
           Case{npy_file(dict("'|u1'", "(2, 3)"), 5), 512, "larger than its entry"},
           Case{npy_file(dict("'<f4'", "(" + max + ", 2)"), 8), 512, "larger than its entry"},
           Case{npy_file(dict("'<f4'", "(4294967296, 4294967296, 0)"), 8), 512, "larger"},
       }) {
    CAPTURE(file, words);
    try {
      (void)read(file);
      FAIL_CHECK("no error was thrown");
    } catch (const CorruptData& error) {
      CHECK(error.offset() == offset);
      CHECK_THAT(error.what(), test::contains(words));
    }
  }
  CHECK_THROWS_AS(read(std::string("\x93NUMPY\x04\0\x10\0", 10)), Unsupported);
}

TEST_CASE("npy headers truncated anywhere are refused", "[formats][npy][malformed]") {
  const auto whole = bytes_of(npy_file(dict("'|u1'", "(2, 3)"), 6));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(npy::read_header(test::cut(whole, size), "a.tar", 512), CorruptData);
  }
  CHECK(npy::read_header(whole, "a.tar", 512).array_bytes == 6);
}

}  // namespace
}  // namespace precache
