// SPDX-License-Identifier: Apache-2.0
#include "convert/sidecars/sidecar_kind.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::array kAllKinds{IndexKind::kDali, IndexKind::kWids, IndexKind::kVds,
                               IndexKind::kTfds};

std::string names_of(const std::vector<IndexKind>& kinds) {
  std::string names;
  for (const IndexKind kind : kinds) {
    names += (names.empty() ? "" : kind == kinds.back() ? " and " : ", ") + std::string(name(kind));
  }
  return names;
}

}  // namespace

std::string_view name(IndexKind kind) {
  switch (kind) {
    case IndexKind::kDali:
      return "dali";
    case IndexKind::kWids:
      return "wids";
    case IndexKind::kVds:
      return "vds";
    case IndexKind::kTfds:
      return "tfds";
  }
  return {};
}

std::vector<IndexKind> parse_index_kinds(std::string_view names) {
  std::vector<IndexKind> kinds;
  for (bool more = true; more;) {
    const std::size_t comma = names.find(',');
    const std::string_view one = names.substr(0, comma);
    const auto known = std::ranges::find(kAllKinds, one, [](IndexKind kind) { return name(kind); });
    if (known == kAllKinds.end()) {
      throw InvalidArgument(fmt::format("'{}' is no kind of index", one),
                            "There are dali, wids, vds and tfds; a comma separates several.");
    }
    kinds.push_back(*known);
    more = comma != std::string_view::npos;
    if (more) names.remove_prefix(comma + 1);
  }
  std::ranges::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

std::vector<IndexKind> kinds_for(Format format, bool has_manifest) {
  switch (format) {
    case Format::kTar:
      return {IndexKind::kDali, IndexKind::kWids};
    case Format::kTfrecord:
      if (has_manifest) return {IndexKind::kDali, IndexKind::kTfds};
      return {IndexKind::kDali};
    case Format::kHdf5:
      break;
  }
  if (has_manifest) return {IndexKind::kVds};
  return {};
}

void check_kind(IndexKind kind, Format format, bool has_manifest, const std::string& what) {
  const std::vector<IndexKind> fitting = kinds_for(format, has_manifest);
  if (std::ranges::find(fitting, kind) != fitting.end()) return;
  const std::vector<IndexKind> with_manifest = kinds_for(format, true);
  const bool lacks_manifest = std::ranges::find(with_manifest, kind) != with_manifest.end();
  throw InvalidArgument(
      fmt::format("an index of kind {} {} {}", name(kind),
                  lacks_manifest ? "needs a dataset.json beside" : "does not fit", what),
      fitting.empty() ? "" : fmt::format("Such shards can have {}.", names_of(fitting)));
}

void check_index_kinds(const std::vector<IndexKind>& kinds, std::string_view format) {
  for (const IndexKind kind : kinds) {
    check_kind(kind, parse_format(format), true, fmt::format("shards of the format {}", format));
  }
}

}  // namespace precache
