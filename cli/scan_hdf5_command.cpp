// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/commands.hpp"
#include "formats/hdf5/helper/helper_process.hpp"

namespace precache {

void add_scan_hdf5(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::filesystem::path>();
  CLI::App* command =
      app.add_subcommand(hdf5::kScanCommand, "Scan one HDF5 file for another process");
  command->group("");  // not for people, so not in the help
  command->add_option("PATH", *path)->required();
  auto contents = std::make_shared<bool>(false);
  command->add_flag(hdf5::kContentsOption, *contents);
  auto check = std::make_shared<bool>(false);
  command->add_flag(hdf5::kCheckOption, *check);
  auto keys = std::make_shared<SampleKeys>();
  command->add_option(hdf5::kImageKeyOption, keys->image);
  command->add_option(hdf5::kLabelKeyOption, keys->label);
  command->add_flag(hdf5::kWithoutLabelsOption, keys->without_labels);
  command->callback([&action, path, contents, check, keys] {
    action = [path, contents, check, keys]() -> ExitCode {
      using Question = hdf5::HelperRequest;
      const auto question = *contents ? Question::kContents
                            : *check  ? Question::kCheck
                                      : Question::kIndex;
      hdf5::serve_helper_request(*path, question, *keys);
    };
  });
}

}  // namespace precache
