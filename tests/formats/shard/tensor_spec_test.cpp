// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/tensor_spec.hpp"

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("dtypes have their names and sizes", "[formats][dtype]") {
  CHECK(name(DType::kUint8) == "uint8");
  CHECK(name(DType::kFloat16) == "float16");
  CHECK(name(DType::kBfloat16) == "bfloat16");
  CHECK(name(DType::kFloat32) == "float32");
  CHECK(size_bytes(DType::kUint8) == 1);
  CHECK(size_bytes(DType::kFloat16) == 2);
  CHECK(size_bytes(DType::kBfloat16) == 2);
  CHECK(size_bytes(DType::kFloat32) == 4);
}

TEST_CASE("dtype names are parsed and others are refused", "[formats][dtype][malformed]") {
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    CHECK(parse_dtype(name(dtype)) == dtype);
  }
  for (const char* text : {"", "UINT8", "uint8 ", "uint", "float64", "int8", "half"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_dtype(text), InvalidArgument);
  }
  try {
    static_cast<void>(parse_dtype("float64"));
  } catch (const InvalidArgument& error) {
    CHECK_THAT(error.what(), test::contains("'float64'"));
    CHECK_THAT(error.hint(), test::contains("float16"));
  }
}

TEST_CASE("layout names are parsed and others are refused", "[formats][spec][malformed]") {
  CHECK(parse_layout("chw") == Layout::kChw);
  CHECK(parse_layout("hwc") == Layout::kHwc);
  CHECK(name(Layout::kChw) == "chw");
  CHECK(name(Layout::kHwc) == "hwc");
  for (const char* text : {"", "CHW", "nchw", "whc"}) {
    CHECK_THROWS_AS(parse_layout(text), InvalidArgument);
  }
}

TEST_CASE("a spec gives its shape in the order of the axes", "[formats][spec]") {
  TensorSpec spec{DType::kUint8, Layout::kChw, 2, 5, 3};
  CHECK(spec.shape() == std::array<std::uint32_t, 3>{3, 2, 5});
  spec.layout = Layout::kHwc;
  CHECK(spec.shape() == std::array<std::uint32_t, 3>{2, 5, 3});
}

TEST_CASE("a spec's size counts the bytes of all elements", "[formats][spec]") {
  CHECK(TensorSpec{DType::kUint8, Layout::kChw, 224, 224, 3}.size_bytes() == 150'528);
  CHECK(TensorSpec{DType::kBfloat16, Layout::kHwc, 224, 224, 3}.size_bytes() == 301'056);
  CHECK(TensorSpec{DType::kFloat32, Layout::kChw, 1, 1, 1}.size_bytes() == 4);
  CHECK(TensorSpec{DType::kUint8, Layout::kChw, 0xffffffffU, 0xffffffffU, 1}.size_bytes() ==
        0xfffffffe00000001U);
  CHECK_THROWS_AS(
      (TensorSpec{DType::kUint8, Layout::kChw, 0xffffffffU, 0xffffffffU, 3}.size_bytes()),
      InvalidArgument);
  CHECK_THROWS_AS(
      (TensorSpec{DType::kFloat32, Layout::kChw, 0xffffffffU, 0xffffffffU, 1}.size_bytes()),
      InvalidArgument);
}

TEST_CASE("errors say what happened and where", "[formats][error]") {
  const IoError io("cannot read", "some/file", EACCES, "Ask the owner.");
  CHECK(std::string(io.what()) == "cannot read 'some/file': Permission denied");
  CHECK(io.hint() == "Ask the owner.");
  CHECK(std::string(IoError("gone:", "f", 0).what()) == "gone: 'f'");
  const CorruptData corrupt("some/file", 12345, "the record is cut");
  CHECK(std::string(corrupt.what()) == "'some/file' is corrupt at byte 12345: the record is cut");
  CHECK(corrupt.offset() == 12345);
  CHECK(corrupt.hint().empty());
  const Unsupported unsupported("what", "hint");
  CHECK(unsupported.hint() == "hint");
}

}  // namespace
}  // namespace precache
