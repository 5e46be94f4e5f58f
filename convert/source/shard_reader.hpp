// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "convert/source/file_reader.hpp"
#include "convert/source/source.hpp"
#include "formats/os/file.hpp"

namespace precache {

/// The shards of a source, of which some are open. Any number of threads may use one at once.
class ShardFileCache {
 public:
  /// Borrows `shards`.
  explicit ShardFileCache(const std::vector<SourceShard>& shards)
      : shards_(shards), files_(shards.size()) {}

  /// Throws IoError if it cannot be opened, or is not the file that was listed.
  [[nodiscard]] std::shared_ptr<const File> open(std::uint32_t shard);
  [[nodiscard]] const SourceShard& shard(std::uint32_t number) const { return shards_[number]; }

 private:
  const std::vector<SourceShard>& shards_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const File>> files_;  // null: not open
  std::deque<std::uint32_t> opened_;                // the first for the longest time
};

/// Reads samples of shards.
class ShardReader : public SampleReader {
 public:
  explicit ShardReader(ShardFileCache& shards) : shards_(shards) {}

  std::optional<Rejection> read(const ListedFile& listed,
                                std::span<const std::byte>& bytes) override;

 private:
  ShardFileCache& shards_;
  std::vector<std::byte> buffer_;
};

}  // namespace precache
