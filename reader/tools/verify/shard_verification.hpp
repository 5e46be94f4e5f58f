// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "precache/formats/error.hpp"
#include "precache/tools/verify.hpp"
#include "reader/shards/shard_listing.hpp"

namespace precache {

/// A shard that is being verified, and what was found of it.
struct ShardVerification {
  /// What a manifest, of tensors or of encoded images, says of a file.
  struct Expected {
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint32_t crc32c = 0;
  };

  explicit ShardVerification(ListedShard shard);

  /// Notes what `call` throws.
  void collect_errors(const std::function<void()>& call);
  void add_fault(std::optional<std::uint64_t> record, const CorruptData& error);

  ListedShard listed;
  std::filesystem::path helper;  // as VerifyOptions has it
  std::optional<Expected> expected;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::vector<ShardFault> faults;
  std::optional<ShardFault> unsupported;
  std::exception_ptr failure;  // of the system, which is not the shard's fault
  bool is_unpacked = false;    // offsets are those of what is compressed

 private:
  /// The record that has this byte, where the manifest tells.
  [[nodiscard]] std::optional<std::uint64_t> record_at(std::uint64_t offset) const;
};

}  // namespace precache
