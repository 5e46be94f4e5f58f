// SPDX-License-Identifier: Apache-2.0
// Lists of labels, the files of `precache build --labels FILE.csv`.
#include "convert/source/label_files.hpp"
#include "precache/formats/error.hpp"
#include "tests/fuzz/expect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace precache;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    std::size_t line = 0;
    for (const CsvLabel& label : parse_csv_labels(text, "fuzz.csv")) {
      fuzz::expect(label.line > line, "lines are numbered in their order");
      fuzz::expect(!label.path.empty() && !label.label.empty(), "no field is empty");
      line = label.line;
    }
  } catch (const InvalidArgument&) {
  }
  return 0;
}
