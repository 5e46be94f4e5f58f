// SPDX-License-Identifier: Apache-2.0
#include "convert/sidecars/sidecar_kind.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::array kAllKinds{SidecarKind::kDali, SidecarKind::kWids, SidecarKind::kVds,
                               SidecarKind::kTfds};

std::string names_of(const std::vector<SidecarKind>& kinds) {
  std::string names;
  for (const SidecarKind kind : kinds) {
    names += (names.empty() ? "" : kind == kinds.back() ? " and " : ", ") + std::string(name(kind));
  }
  return names;
}

}  // namespace

std::string_view name(SidecarKind kind) {
  switch (kind) {
    case SidecarKind::kDali:
      return "dali";
    case SidecarKind::kWids:
      return "wids";
    case SidecarKind::kVds:
      return "vds";
    case SidecarKind::kTfds:
      return "tfds";
  }
  return {};
}

std::vector<SidecarKind> parse_index_kinds(std::string_view names) {
  std::vector<SidecarKind> kinds;
  for (bool more = true; more;) {
    const std::size_t comma = names.find(',');
    const std::string_view one = names.substr(0, comma);
    const auto known =
        std::ranges::find(kAllKinds, one, [](SidecarKind kind) { return name(kind); });
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

std::vector<SidecarKind> kinds_for(Format format, bool has_manifest) {
  switch (format) {
    case Format::kTar:
      return {SidecarKind::kDali, SidecarKind::kWids};
    case Format::kTfrecord:
      if (has_manifest) return {SidecarKind::kDali, SidecarKind::kTfds};
      return {SidecarKind::kDali};
    case Format::kHdf5:
      break;
  }
  if (has_manifest) return {SidecarKind::kVds};
  return {};
}

void check_kind(SidecarKind kind, Format format, bool has_manifest, const std::string& what) {
  const std::vector<SidecarKind> fitting = kinds_for(format, has_manifest);
  if (std::ranges::find(fitting, kind) != fitting.end()) return;
  const std::vector<SidecarKind> with_manifest = kinds_for(format, true);
  const bool lacks_manifest = std::ranges::find(with_manifest, kind) != with_manifest.end();
  throw InvalidArgument(
      fmt::format("an index of kind {} {} {}", name(kind),
                  lacks_manifest ? "needs a dataset.json beside" : "does not fit", what),
      fitting.empty() ? "" : fmt::format("Such shards can have {}.", names_of(fitting)));
}

void check_sidecar_kinds(const std::vector<SidecarKind>& kinds, Format format) {
  for (const SidecarKind kind : kinds) {
    check_kind(kind, format, true, fmt::format("shards of the format {}", name(format)));
  }
}

}  // namespace precache
