// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "convert/shard_builder.hpp"
#include "convert/source/source.hpp"
#include "formats/base/file.hpp"
#include "formats/framing.hpp"

namespace precache {

/// What a build has to remember until it is finished, in `OUT/.precache/`:
///
///   .lock                  held by whoever works on OUT: shared by parts, alone otherwise
///   SPLIT/prepare.lock     held while the listing is made, so that parts make it once
///   SPLIT/job.json         the options that make up the dataset's identity, and what to know of
///                          the source beside its listing
///   SPLIT/listing          the frozen listing of the source
///   SPLIT/unpacked.XXXXXX/ plain copies of shards that are compressed or came through a pipe
///   SPLIT/000000.part      a shard while it is written
///   SPLIT/000000.json      the result of a finished shard
class WorkFolder {
 public:
  /// Creates the folder if need be and locks OUT. Throws IoError, also if another process holds the
  /// lock.
  WorkFolder(const std::filesystem::path& out, const std::string& split, bool shared);
  /// Removes what it has made if nothing was frozen: a build that is refused leaves no trace.
  ~WorkFolder();

  /// Waits until no other part prepares; they do so one after the other while this is held.
  [[nodiscard]] File lock_preparation() const;
  /// Whether a source was frozen, by this or an earlier run.
  [[nodiscard]] bool is_prepared() const { return std::filesystem::exists(folder_ / "job.json"); }
  /// Where to make a folder of copies, without those that a killed run has left there. To be used
  /// while no other part prepares.
  [[nodiscard]] std::filesystem::path folder_for_copies() const;
  /// Keeps the source as it is now, listed at `root`, and forgets all shards. `identity` is a JSON
  /// object.
  void freeze(const std::string& identity, const Source& source,
              const std::filesystem::path& root) const;
  /// The source as it was frozen. Throws InvalidArgument if that was with another identity, or if
  /// `root` names other files now, or its files are not the same.
  [[nodiscard]] Source load(const std::string& identity, const std::filesystem::path& root) const;

  [[nodiscard]] std::filesystem::path temporary(std::uint64_t shard) const;
  /// The result of a shard whose file is whole at `final_path`, or nothing.
  [[nodiscard]] std::optional<ShardResult> result(std::uint64_t shard,
                                                  const std::filesystem::path& final_path) const;
  void save_result(std::uint64_t shard, const ShardResult& result) const;

  /// Forgets all about the split, and removes `OUT/.precache/` if no other one needs it.
  void remove();

 private:
  void remove_quietly();

  std::filesystem::path root_;
  std::filesystem::path folder_;
  bool shared_;
  bool made_out_;
  bool removed_ = false;
  File lock_;
};

}  // namespace precache
