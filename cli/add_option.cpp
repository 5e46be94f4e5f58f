// SPDX-License-Identifier: Apache-2.0
#include "cli/add_option.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/option_values.hpp"
#include "precache/formats/error.hpp"

namespace precache::cli {

CLI::Option* add(CLI::App& app, const std::string& option, const std::string& value,
                 const std::string& text, const std::function<void(const std::string&)>& on_text) {
  return app.add_option_function<std::string>(option, on_text, text)->option_text(value);
}

CLI::Option* add_choice(CLI::App& app, const std::string& option,
                        const std::vector<std::string>& words, const std::string& standard,
                        const std::string& text,
                        const std::function<void(const std::string&)>& chosen) {
  const std::string value =
      fmt::format("{}{}", fmt::join(words, "|"), standard.empty() ? "" : " [" + standard + "]");
  return add(app, option, value, text, [=](const std::string& word) {
    if (std::ranges::find(words, word) == words.end()) {
      throw InvalidArgument(
          fmt::format("{} '{}' is none of {}", option, word, fmt::join(words, ", ")));
    }
    chosen(word);
  });
}

void add_message_options(CLI::App& app, std::filesystem::path& proto, std::string& message) {
  add(app, "--proto", "SET.desc",
      "TFRecords of any message: a descriptor set, as protoc --descriptor_set_out "
      "--include_imports writes it; keys are paths of its fields: frame.images.image",
      [&](const std::string& text) { proto = option_values::not_empty("--proto", text); });
  add(app, "--message", "NAME", "With --proto: the full name of the message that each record is",
      [&](const std::string& text) { message = option_values::not_empty("--message", text); });
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
