// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/shard/encoded_shard.hpp"
#include "formats/shard/framing.hpp"

// The writers of shards for all formats. The one for HDF5 is in a separate library, precache_hdf5.
namespace precache {

/// Throws InvalidArgument if the names or the tensor are too large for the format, Unsupported if
/// this build lacks it.
[[nodiscard]] std::unique_ptr<const Framing> make_framing(
    Format format, const TensorSpec& spec, const NameLimits& limits,
    const std::vector<std::string>& classes, const std::vector<NamedColumn>& named = {});

/// Throws Unsupported if this build lacks the format.
void check_encoded_format(Format format);

/// Throws Unsupported if this build lacks the format, and IoError.
[[nodiscard]] std::unique_ptr<EncodedShard> make_encoded_shard(
    Format format, const std::filesystem::path& path, const NameLimits& limits,
    const std::vector<std::string>& classes);

}  // namespace precache
