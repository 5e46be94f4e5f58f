// SPDX-License-Identifier: Apache-2.0
// NumPy arrays, as entries of an archive with a label beside each.
#include <string>

#include "formats/base/file.hpp"
#include "formats/tar/tar_scan.hpp"
#include "tests/fuzz/read_index.hpp"
#include "tests/support/tar_writer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace precache;
  const std::string_view array(reinterpret_cast<const char*>(data), size);
  const std::string archive = test::tar_entry("a.npy", array) + test::tar_entry("a.cls", "7") +
                              test::tar_entry("b.npy", array) + test::tar_entry("b.cls", "8");
  const TensorSpec given{DType::kBfloat16, AxisOrder::kHwc, 4, 4, 3};
  const auto file = as_bytes(archive);
  fuzz::may_refuse([&] { fuzz::read_all(tar::scan(file, "fuzz.tar", {}), file); });
  fuzz::may_refuse([&] { fuzz::read_all(tar::scan(file, "fuzz.tar", given), file); });
  return 0;
}
