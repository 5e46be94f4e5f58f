// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_locks.hpp"

#include <unistd.h>

namespace precache {

ShardLocks::~ShardLocks() {
  for (const auto& [shard, file] : held_) ::unlink(file.path().c_str());
}

bool ShardLocks::take(const std::filesystem::path& shard) {
  auto file = work_.lock_shard(shard);
  if (!file) return false;
  const std::scoped_lock lock(mutex_);
  held_.emplace(shard, std::move(*file));
  return true;
}

void ShardLocks::release(const std::filesystem::path& shard) {
  const std::scoped_lock lock(mutex_);
  const auto found = held_.find(shard);
  if (found == held_.end()) return;
  ::unlink(found->second.path().c_str());
  held_.erase(found);
}

}  // namespace precache
