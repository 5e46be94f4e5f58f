// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/dtype.hpp"

#include <array>

#include "formats/bytes/enum_names.hpp"
#include "formats/bytes/half_float.hpp"

namespace precache {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Entry, 4> kEntries{{{DType::kUint8, "uint8", 1},
                                         {DType::kFloat16, "float16", 2},
                                         {DType::kBfloat16, "bfloat16", 2},
                                         {DType::kFloat32, "float32", 4}}};

}  // namespace

std::size_t size_bytes(DType dtype) { return kEntries[static_cast<std::size_t>(dtype)].bytes; }

std::string_view name(DType dtype) { return kEntries[static_cast<std::size_t>(dtype)].name; }

DType parse_dtype(std::string_view name) { return parse_enum(kAllDTypes, name, "dtype"); }

Float16::operator float() const { return from_float16(bits); }

Bfloat16::operator float() const { return from_bfloat16(bits); }

}  // namespace precache
