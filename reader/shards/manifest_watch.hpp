// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "formats/os/file.hpp"
#include "formats/os/fork.hpp"

namespace precache {

/// The interval between checks for changes from outside.
inline constexpr std::int64_t kLookEveryNs = 50'000'000;

/// A clock that needs no system call and is up to some milliseconds late.
[[nodiscard]] std::int64_t coarse_now_ns();

/// Notices that the manifest of an open dataset was replaced.
///
/// A dataset is replaced in this order: the manifest is removed, shards are replaced, the new
/// manifest is written. So a shard belongs to the manifest that was read if is_current() returns
/// true after the shard was opened.
///
/// Any number of threads may use one at once.
class ManifestWatch {
 public:
  /// `state` is the state of the manifest before it was read.
  ManifestWatch(std::filesystem::path path, const FileState& state)
      : path_(std::move(path)), current_(state) {}

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// True if kLookEveryNs have passed since is_current() returned true. Needs no system call.
  [[nodiscard]] bool is_due(std::int64_t now_ns) const {
    return now_ns >= next_ns_.load(std::memory_order_relaxed);
  }

  /// False if the manifest is gone, or if it changed and `says_the_same`, which reads it again,
  /// returns false. If that returns true, the new file counts as current. Throws IoError and the
  /// exceptions of `says_the_same`.
  [[nodiscard]] bool is_current(Ask ask, const std::function<bool()>& says_the_same) const;

 private:
  [[nodiscard]] bool look(Ask ask, const std::function<bool()>& says_the_same) const;

  std::filesystem::path path_;
  mutable ForkSafeMutex mutex_;
  mutable FileState current_;
  mutable std::optional<FileState> other_;  // was read and differs
  mutable std::atomic<std::int64_t> next_ns_{0};
};

}  // namespace precache
