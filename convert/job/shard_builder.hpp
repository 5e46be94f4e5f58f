// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "formats/os/file.hpp"
#include "formats/shard/framing.hpp"
#include "precache/convert/job.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {

/// A finished shard as the work folder remembers it.
struct ShardResult {
  std::string plan;  // identity of the plan that made it
  ShardEntry entry;
  std::int64_t mtime_ns = 0;  // of the file, which a rename keeps
  std::uint64_t content = 0;  // sum of the content_term() of its samples
  std::uint64_t damaged = 0;  // samples that a decoder took with a warning
  std::uint64_t turned = 0;   // samples that were turned by their EXIF orientation
  std::vector<SkippedSample> skipped;

  [[nodiscard]] std::string to_json() const;
  /// Throws CorruptData.
  [[nodiscard]] static ShardResult from_json(std::string_view text,
                                             const std::filesystem::path& path);
};

/// One shard while its records are written, in any order and by any number of threads, to a
/// temporary file.
///
/// Each slot gets one write() or reject(). The call that makes the last of them returns true; then
/// one thread calls complete() and commit(), once.
class ShardBuilder {
 public:
  /// Creates the temporary and reserves its space. Throws IoError.
  ShardBuilder(const Framing& framing, const std::filesystem::path& temporary,
               std::filesystem::path final_path, std::uint64_t slots);
  /// Removes the temporary of a shard that was not committed.
  ~ShardBuilder();

  /// REQUIRES: `record` was framed with these values, `crc` is what frame() returned.
  [[nodiscard]] bool write(std::uint64_t slot, std::span<const std::byte> record, std::uint32_t crc,
                           bool damaged, std::span<const std::byte> values = {});
  [[nodiscard]] bool reject(std::uint64_t slot, SkippedSample skipped);
  /// Notes the content_term() of a sample, before its write() or reject().
  void note_content(std::uint64_t term) { content_ += term; }
  /// Notes that a sample was turned, before its write().
  void note_turned() { ++turned_; }

  /// Closes the holes that rejected samples left, and writes prologue and epilogue. `name_of_slot`
  /// names the sample that was planned for a slot. With `keep_order`, all records after a hole move
  /// down; else the shard's last record moves into it.
  void complete(const std::function<SampleName(std::uint64_t)>& name_of_slot,
                bool keep_order = false);
  /// Syncs the file, passes its result to `save` and renames the file into place, in this order:
  /// every shard that has its final name has a result.
  [[nodiscard]] ShardResult commit(const std::function<void(const ShardResult&)>& save);

 private:
  [[nodiscard]] std::uint64_t offset(std::uint64_t slot) const {
    return framing_.records_base() + slot * framing_.record_bytes();
  }
  /// The slots whose records end up at positions 0, 1, ... of the shard.
  [[nodiscard]] std::vector<std::uint64_t> arrange(bool keep_order) const;

  const Framing& framing_;
  std::filesystem::path final_path_;
  File file_;
  std::atomic<std::uint64_t> open_slots_;
  std::atomic<std::uint64_t> damaged_{0};
  std::atomic<std::uint64_t> turned_{0};
  std::atomic<std::uint64_t> content_{0};
  std::vector<std::uint32_t> crcs_;                 // by slot
  std::vector<std::byte> values_;                   // by slot, if the framing keeps them
  std::mutex mutex_;                                // for `skipped_`
  std::map<std::uint64_t, SkippedSample> skipped_;  // by slot
  ShardResult result_;
  bool committed_ = false;
};

}  // namespace precache
