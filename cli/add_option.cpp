// SPDX-License-Identifier: Apache-2.0
#include "cli/add_option.hpp"

#include <fmt/ranges.h>

#include "formats/bytes/text.hpp"
#include "precache/formats/error.hpp"

namespace precache::cli {

void begin_group(CLI::App& app, const std::string& name) { app.option_defaults()->group(name); }

CLI::Option* add(CLI::App& app, const std::string& option, const std::string& value,
                 const std::string& text, const std::function<void(const std::string&)>& on_text) {
  CLI::Option* added = app.add_option_function<std::string>(option, on_text, text);
  const std::size_t bracket = value.find(" [");
  if (bracket != std::string::npos) {
    added->default_str(value.substr(bracket + 2, value.size() - bracket - 3));
  }
  return added->option_text(value.substr(0, bracket));
}

CLI::Option* add_choice(CLI::App& app, const std::string& option,
                        const std::vector<std::string>& words, const std::string& standard,
                        const std::string& text,
                        const std::function<void(const std::string&)>& chosen) {
  const std::string value =
      fmt::format("{}{}", fmt::join(words, "|"), standard.empty() ? "" : " [" + standard + "]");
  return add(app, option, value, text, [=](const std::string& word) {
    if (std::ranges::find(words, word) != words.end()) return chosen(word);
    throw InvalidArgument(
        fmt::format("{} must be one of {}, got '{}'", option, fmt::join(words, ", "), word),
        did_you_mean(word, words));
  });
}

void add_message_options(CLI::App& app, std::filesystem::path& proto, std::string& message) {
  add_text(app, "--proto", "SET.desc",
           "For TFRecords of any protobuf message: a descriptor set, as protoc "
           "--descriptor_set_out --include_imports writes it. Keys are then paths of fields, such "
           "as frame.images.image",
           proto);
  add_text(app, "--message", "NAME", "With --proto: the full name of the message in each record",
           message);
}

}  // namespace precache::cli
