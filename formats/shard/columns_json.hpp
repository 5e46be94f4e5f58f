// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "precache/formats/columns.hpp"
#include "precache/formats/named_column.hpp"

/// The columns of a split in a manifest: once for all of its shards, and what differs in a shard.
/// All that read throw std::invalid_argument, InvalidArgument, or exceptions of the JSON library.
namespace precache::columns_json {

using Json = nlohmann::ordered_json;

/// The object `columns` of a split, each column on its own line. REQUIRES: `places` has a
/// place for each column of `named`.
[[nodiscard]] std::string text(const std::vector<NamedColumn>& named, const ShardColumns& places);
void read(const Json& json, std::vector<NamedColumn>& named, ShardColumns& places);

/// The object `columns` of a shard: the members of those columns whose places are not `common`.
[[nodiscard]] Json difference(const std::vector<NamedColumn>& named, const ShardColumns& common,
                              const ShardColumns& places);
/// Changes `places`, which are those of the split, to those of a shard.
void apply(const Json& difference, const std::vector<NamedColumn>& named, ShardColumns& places);

/// The object `columns` of a shard in version 1, which had no named columns.
void read_version_1(const Json& json, ShardColumns& places);

}  // namespace precache::columns_json
