// SPDX-License-Identifier: Apache-2.0
#include "cli/add_option.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "precache/formats/error.hpp"

namespace precache::cli {

CLI::Option* add(CLI::App& app, const std::string& option, const std::string& value,
                 const std::string& text, const std::function<void(const std::string&)>& on_text) {
  return app.add_option_function<std::string>(option, on_text, text)->option_text(value);
}

CLI::Option* add_choice(CLI::App& app, const std::string& option,
                        const std::vector<std::string>& words, const std::string& standard,
                        const std::string& text, const std::function<void(std::size_t)>& chosen) {
  const std::string value =
      fmt::format("{}{}", fmt::join(words, "|"), standard.empty() ? "" : " [" + standard + "]");
  return add(app, option, value, text, [=](const std::string& word) {
    const auto found = std::ranges::find(words, word);
    if (found == words.end()) {
      throw InvalidArgument(
          fmt::format("{} '{}' is none of {}", option, word, fmt::join(words, ", ")));
    }
    chosen(static_cast<std::size_t>(found - words.begin()));
  });
}

void add_shard_paths(CLI::App& app, std::vector<std::filesystem::path>& paths,
                     std::optional<std::string>& split, bool& quiet, bool& json) {
  app.get_formatter()->column_width(34);
  app.add_option("PATH", paths,
                 "Dataset folders, shards of any origin, or patterns (quoted): 'train-*.tar', "
                 "'train-{000000..000012}.tar'")
      ->required()
      ->option_text("...");
  app.add_option("--split", split, "Only this split of a dataset")->option_text("NAME [all]");
  app.add_flag("--quiet", quiet, "No progress");
  app.add_flag("--json", json, "Result as JSON on stdout");
}

}  // namespace precache::cli
