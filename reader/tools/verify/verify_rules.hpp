// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "precache/tools/verify.hpp"
#include "reader/tools/verify/shard_verification.hpp"

namespace precache {

/// That a shard has what its manifest says, where it says; or without one, that its framing and the
/// CRCs in it are right. Throws what it finds, or notes it.
void check_structure(ShardVerification& shard, VerifyProgress& progress);

/// Whether a part of a tar or TFRecord shard, which begins with a record, has those that the
/// manifest puts there, and behind the last one nothing but the zeros that end an archive.
[[nodiscard]] bool has_right_records(const ShardVerification& shard, std::uint64_t offset,
                                     std::span<const std::byte> part);

/// Where `crc`, that of the whole file, is not the manifest's: notes where the damage is, as far as
/// the format tells.
void locate_damage(ShardVerification& shard, std::uint32_t crc, VerifyProgress& progress);

}  // namespace precache
