// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "formats/shard/framing.hpp"
#include "precache/formats/manifest.hpp"

/// Index files of NVIDIA DALI: for TFRecord a line "OFFSET SIZE" per record, for tar the format of
/// its tool wds2idx, version 1.2.
namespace precache::dali {

struct Index {
  std::string text;
  std::uint64_t samples = 0;
};

/// SHARD.idx.
[[nodiscard]] std::filesystem::path index_path(const std::filesystem::path& shard);

/// Reads the headers of a tar, or the lengths of a TFRecord file. Throws CorruptData, IoError and,
/// for sparse files, Unsupported.
[[nodiscard]] Index index_of(const std::filesystem::path& shard, Format format);
/// Of a precache TFRecord shard, by arithmetic. Throws CorruptData if the file has another size.
[[nodiscard]] Index index_of(const std::filesystem::path& shard, const ShardEntry& entry);

/// Whether the text looks like an index for shards of the format.
[[nodiscard]] bool is_index(std::string_view text, Format format);

}  // namespace precache::dali
