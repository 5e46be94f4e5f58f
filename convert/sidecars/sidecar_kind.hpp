// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/shard/framing.hpp"
#include "precache/convert/sidecars.hpp"

namespace precache {

/// The kinds that shards of a format can have; some need a manifest.
[[nodiscard]] std::vector<SidecarKind> kinds_for(Format format, bool has_manifest);

/// Throws InvalidArgument if the kind is none of kinds_for(). `what` names the shards.
void check_kind(SidecarKind kind, Format format, bool has_manifest, const std::string& what);

}  // namespace precache
