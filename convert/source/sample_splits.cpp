// SPDX-License-Identifier: Apache-2.0
#include "convert/source/sample_splits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "convert/source/source.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/bytes/splitmix.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::string_view kAllOthers = "*";

/// FNV-1a, begun and ended with SplitMix64, so that every bit depends on the seed and all bytes.
std::uint64_t hash_of(std::uint64_t seed, std::string_view path) {
  std::uint64_t hash = splitmix(seed + kGoldenGamma);
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return splitmix(hash);
}

}  // namespace

SplitSamples split_by_fraction(const Listing& listing, double val_fraction, std::uint64_t seed) {
  using Entry = std::tuple<std::int64_t, std::uint64_t, std::uint64_t>;  // label, hash, sample
  std::vector<Entry> entries;
  entries.reserve(listing.size());
  for (std::size_t i = 0; i < listing.size(); ++i) {
    const ListedFile file = listing[i];
    entries.emplace_back(file.label, hash_of(seed, file.path), i);
  }
  std::ranges::sort(entries);
  SplitSamples splits;
  auto& train = splits["train"];
  auto& val = splits["val"];
  for (std::size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    while (end < entries.size() && std::get<0>(entries[end]) == std::get<0>(entries[begin])) ++end;
    const auto chosen =
        static_cast<std::size_t>(std::floor(static_cast<double>(end - begin) * val_fraction + 0.5));
    for (std::size_t i = begin; i < end; ++i) {
      (i - begin < chosen ? val : train).push_back(std::get<2>(entries[i]));
    }
  }
  for (auto& [name, samples] : splits) {
    if (samples.empty()) {
      throw InvalidArgument(
          fmt::format("`val_fraction` {} leaves no sample for '{}': each class gives its share of "
                      "{}, rounded to whole samples",
                      val_fraction, name, human::count(listing.size(), "sample")),
          "Choose a fraction that is at least half a sample of the largest class, or use "
          "`split_file`.");
    }
    std::ranges::sort(samples);
  }
  return splits;
}

SplitFile::SplitFile(std::filesystem::path file, const std::filesystem::path& root)
    : file_(std::move(file)), rows_(read_split_rows(file_, root)) {
  std::set<std::string> names;
  for (const CsvLabel& row : rows_) {
    names.insert(row.label);
    if (row.path == kAllOthers) all_other_ = row.label;
  }
  std::erase_if(rows_, [](const CsvLabel& row) { return row.path == kAllOthers; });
  names_.assign(names.begin(), names.end());
  if (names_.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' is empty: it must have lines of path,split", file_.string()));
  }
}

SplitSamples SplitFile::split(const Listing& listing) const {
  struct Row {
    const CsvLabel* row;
    bool used;
  };
  std::unordered_map<std::string_view, Row> rows;
  for (const CsvLabel& row : rows_) rows.emplace(row.path, Row{&row, false});
  SplitSamples splits;
  for (const std::string& name : names_) splits[name];
  for (std::size_t i = 0; i < listing.size(); ++i) {
    const std::string_view path = listing[i].path;
    const auto found = rows.find(path);
    if (found == rows.end() && !all_other_) {
      throw InvalidArgument(
          fmt::format("'{}' has no line for '{}'", file_.string(), path),
          "Add a line for each sample, or '*,train' for all that are not listed.");
    }
    if (found != rows.end()) found->second.used = true;
    splits[found == rows.end() ? *all_other_ : found->second.row->label].push_back(i);
  }
  for (const CsvLabel& row : rows_) {
    if (rows.at(row.path).used) continue;
    throw InvalidArgument(
        fmt::format("'{}' line {}: there is no sample '{}'", file_.string(), row.line, row.path),
        listing.size() == 0 ? "" : fmt::format("The first sample is '{}'.", listing[0].path));
  }
  for (const auto& [name, samples] : splits) {
    if (!samples.empty()) continue;
    throw InvalidArgument(
        fmt::format("'{}' leaves no sample for the split '{}'", file_.string(), name));
  }
  return splits;
}

}  // namespace precache
