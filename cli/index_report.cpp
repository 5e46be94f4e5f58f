// SPDX-License-Identifier: Apache-2.0
#include "cli/index_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"

namespace precache {

using Json = nlohmann::ordered_json;

std::vector<std::string> index_lines(const SidecarReport& report) {
  std::vector<std::string> lines;
  std::uint64_t files = 0;
  std::uint64_t samples = 0;
  for (const WrittenIndex& index : report.written) {
    if (index.kind == SidecarKind::kDali) {
      files += 1;
      samples += index.samples;
    } else {
      lines.push_back(fmt::format("{}: {} in {}", name(index.kind),
                                  human::count(index.samples, "sample"), index.file.string()));
    }
  }
  if (files != 0) {
    lines.insert(lines.begin(), fmt::format("dali: {} in {}", human::count(samples, "sample"),
                                            human::count(files, ".idx file")));
  }
  return lines;
}

Json to_json(const SidecarReport& report) {
  Json written = Json::array();
  for (const WrittenIndex& index : report.written) {
    written.push_back(
        {{"kind", name(index.kind)}, {"file", index.file.string()}, {"samples", index.samples}});
  }
  Json missing = Json::array();
  for (const MissingIndex& index : report.missing) {
    missing.push_back(
        {{"kind", name(index.kind)}, {"of", index.of.string()}, {"reason", index.reason}});
  }
  return {{"written", std::move(written)}, {"missing", std::move(missing)}};
}

void say_missing(const SidecarReport& report) {
  for (const MissingIndex& index : report.missing) {
    say("precache: no index of kind {} for '{}': {}\n", name(index.kind), index.of.string(),
        index.reason);
  }
}

}  // namespace precache
