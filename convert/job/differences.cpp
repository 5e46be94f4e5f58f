// SPDX-License-Identifier: Apache-2.0
#include "convert/job/differences.hpp"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostShown = 6;

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "none" : value.dump();
}

void compare(const std::string& name, const Json& in_out, const Json& here,
             std::vector<std::string>& found) {
  if (in_out.is_object() && here.is_object()) {
    Json keys = in_out;
    keys.update(here);
    for (const auto& [key, value] : keys.items()) {
      compare(name.empty() ? key : fmt::format("{}.{}", name, key), in_out.value(key, Json()),
              here.value(key, Json()), found);
    }
  } else if (in_out.is_array() && here.is_array() && in_out.size() == here.size()) {
    for (std::size_t i = 0; i < here.size(); ++i) {
      compare(fmt::format("{}[{}]", name, i), in_out[i], here[i], found);
    }
  } else if (in_out.is_array() && here.is_array()) {
    found.push_back(fmt::format("{}: {} in `out`, {} here", name, in_out.size(), here.size()));
  } else if (in_out != here) {
    found.push_back(fmt::format("{}: {} in `out`, {} here", name, text_of(in_out), text_of(here)));
  }
}

std::string joined(std::vector<std::string> found) {
  if (found.size() > kMostShown) {
    const std::size_t rest = found.size() - (kMostShown - 1);
    found.resize(kMostShown - 1);
    found.push_back(fmt::format("and {} more", rest));
  }
  return fmt::format("{}", fmt::join(found, "; "));
}

/// The fields that a manifest has for a split and for its dataset, with the number of samples in
/// each shard.
Json facts_of(const std::string& manifest, const std::string& split) {
  Json all = Json::parse(manifest);
  Json facts = all["splits"][split];
  for (const char* key : {"format", "spec", "recipe", "classes"}) {
    if (all.contains(key)) facts[key] = all[key];
  }
  Json samples = Json::array();
  for (const Json& shard : facts["shards"]) samples.push_back(shard["samples"]);
  facts["shards"] = std::move(samples);
  // Named columns without their places, which follow from everything else.
  Json named = Json::object();
  const Json columns = facts.value("columns", Json::object());
  for (const auto& [name, column] : columns.items()) {
    if (!column.contains("shape")) continue;
    Json what = column;
    what.erase("base");
    what.erase("stride");
    named[name] = what.dump();
  }
  if (!named.empty()) facts["named_columns"] = std::move(named);
  return facts;
}

/// Takes a field out of both and returns whether it differs.
bool take(const char* key, Json& in_out, Json& here) {
  const bool differs = in_out.value(key, Json()) != here.value(key, Json());
  in_out.erase(key);
  here.erase(key);
  return differs;
}

}  // namespace

std::string differences(const Json& in_out, const Json& here) {
  std::vector<std::string> found;
  compare("", in_out, here, found);
  return joined(std::move(found));
}

std::string dataset_differences(const Manifest& in_out, const Manifest& here) {
  const auto facts = [](const Manifest& manifest) {
    return Json{{"format", name(manifest.format)},
                {"recipe", Json::parse(manifest.recipe.to_json())}};
  };
  const std::string text = differences(facts(in_out), facts(here));
  // Tensors of unknown origin have recipes that do not determine the spec.
  return text.empty() ? differences({{"spec", in_out.spec.text()}}, {{"spec", here.spec.text()}})
                      : text;
}

std::string split_differences(const std::string& finished, const std::string& planned,
                              const std::string& split, bool may_skip,
                              const std::string& source_text) {
  Json in_out = facts_of(finished, split);
  Json here = facts_of(planned, split);
  if (may_skip) {
    const auto skipped = in_out["skipped"].get<std::uint64_t>();
    in_out["samples"] = in_out["samples"].get<std::uint64_t>() + skipped;
    if (skipped != 0 && in_out["shards"].size() == here["shards"].size()) {
      take("shards", in_out, here);
    }
    take("skipped", in_out, here);
  }
  // Version 0.1 wrote no `names`; the columns then tell as much.
  const bool has_names = in_out.contains("names");
  if (!has_names) here.erase("names");
  if (has_names || may_skip) take("columns", in_out, here);
  const bool knows_content = !in_out.value("content_fingerprint", "").empty() &&
                             !here.value("content_fingerprint", "").empty();
  const bool has_other_content = take("content_fingerprint", in_out, here) && knows_content;
  std::vector<std::string> found;
  if (take("source_fingerprint", in_out, here)) {
    found.push_back(source_text);
    take("samples", in_out, here);  // these follow from the source
    take("names", in_out, here);
    if (in_out["shards"].size() == here["shards"].size()) take("shards", in_out, here);
  } else if (has_other_content) {
    found.emplace_back("the content of the source differs");
  }
  if (!differences(in_out.value("recipe", Json()), here.value("recipe", Json())).empty()) {
    take("spec", in_out, here);  // follows from the recipe
  }
  compare("", in_out, here, found);
  return joined(std::move(found));
}

}  // namespace precache
