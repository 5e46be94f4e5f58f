// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <mutex>

#include "convert/job/work_folder.hpp"

namespace precache {

/// The locks of the shards that this process is writing. They only save work: another process that
/// sees them makes other shards first. Any number of threads may use one at once.
class ShardLocks {
 public:
  /// Borrows `work`.
  explicit ShardLocks(const WorkFolder& work) : work_(work) {}
  ShardLocks(const ShardLocks&) = delete;
  ShardLocks& operator=(const ShardLocks&) = delete;
  ~ShardLocks();

  /// False if another process holds it. Throws IoError.
  [[nodiscard]] bool take(const std::filesystem::path& shard);
  void release(const std::filesystem::path& shard);

 private:
  const WorkFolder& work_;
  std::mutex mutex_;
  std::map<std::filesystem::path, File> held_;
};

}  // namespace precache
