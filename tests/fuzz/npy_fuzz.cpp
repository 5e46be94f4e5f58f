// SPDX-License-Identifier: Apache-2.0
// A NumPy array, as an entry of an archive with a label next to
// it.
#include <string>

#include "formats/os/file.hpp"
#include "formats/shard/scan.hpp"
#include "tests/fuzz/read_index.hpp"
#include "tests/support/tar_writer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace precache;
  const std::string_view array(reinterpret_cast<const char*>(data), size);
  // At the end of the file, so that an array that is too large runs past it.
  const std::string archive = test::tar_entry("a.cls", "7") + test::tar_entry("a.npy", array);
  const TensorSpec given{DType::kBfloat16, Layout::kHwc, 4, 4, 3};
  const auto file = as_bytes(archive);
  fuzz::read_all(fuzz::scanned([&] { return tar::scan(file, "fuzz.tar", {}); }), file);
  fuzz::read_all(fuzz::scanned([&] { return tar::scan(file, "fuzz.tar", given); }), file);
  return 0;
}
