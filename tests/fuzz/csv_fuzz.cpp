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
    const CsvTable table = parse_csv_table(text, "fuzz.csv");
    for (const CsvLabel& label : table.rows) {
      fuzz::expect(label.line > line, "lines are numbered in their order");
      fuzz::expect(!label.path.empty(), "no path is empty");
      fuzz::expect(!label.label.empty() || !table.targets.empty(),
                   "only a file with targets may lack labels");
      fuzz::expect(label.targets.size() == table.targets.size(), "each row has all targets");
      line = label.line;
    }
    fuzz::expect(parse_csv_targets(text, "fuzz.csv").size() == table.targets.size(),
                 "both see the same columns with types");
  } catch (const InvalidArgument&) {
  }
  return 0;
}
