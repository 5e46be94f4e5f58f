// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "precache/formats/error.hpp"
#include "precache/tools/verify.hpp"
#include "reader/shards/shard_listing.hpp"

namespace precache {

/// A shard that is being verified, and the findings so far.
struct ShardVerification {
  explicit ShardVerification(ListedShard shard)
      : listed(std::move(shard)), expected(listed.known()) {}

  /// Adds the exceptions of `call` to the findings.
  void collect_errors(const std::function<void()>& call);
  void add_fault(std::optional<std::uint64_t> record, const CorruptData& error);

  ListedShard listed;
  std::filesystem::path helper;          // of VerifyOptions
  const ShardEntry* expected = nullptr;  // in the manifest
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::vector<ShardFault> faults;
  std::optional<ShardFault> unsupported;
  std::exception_ptr failure;  // of the system, not of the shard
  bool is_unpacked = false;    // offsets are those of the decompressed content

 private:
  /// The record that contains this byte, if a manifest describes the shard.
  [[nodiscard]] std::optional<std::uint64_t> record_at(std::uint64_t offset) const;
};

// The rules throw what they find, or add it to the findings.

/// Checks that a shard has the samples of its manifest at the right places; without a manifest,
/// that its framing and the CRCs in it are right.
void check_structure(ShardVerification& shard, VerifyProgress& progress);

/// True if a part of a tar or TFRecord shard, which begins with a record, has the records of the
/// manifest, and after the last record only the zeros that end an archive.
[[nodiscard]] bool has_right_records(const ShardVerification& shard, std::uint64_t offset,
                                     std::span<const std::byte> part);

/// If `crc`, that of the whole file, differs from the manifest: finds the damage as precisely as
/// the format allows.
void locate_damage(ShardVerification& shard, std::uint32_t crc, VerifyProgress& progress);

}  // namespace precache
