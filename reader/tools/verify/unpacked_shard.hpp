// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "reader/shards/mapped_shard.hpp"

namespace precache {

/// Whether a file is compressed in a way that is read here: by gzip or zlib.
[[nodiscard]] bool is_packed(std::span<const std::byte> file);

/// What a compressed shard unpacks to, in a temporary file without a name.
class UnpackedShard {
 public:
  /// Calls `progress` with the size of each piece that was read; ends early, with less than the
  /// whole, when that returns false. Throws CorruptData if the shard is broken, and IoError, if the
  /// folder for temporary files is full, say.
  UnpackedShard(const MappedShard& packed, const std::function<bool(std::uint64_t)>& progress);

  [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_.bytes(); }

 private:
  Mapping mapping_;
};

}  // namespace precache
