// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/os/fork.hpp"
#include "formats/shard/column_values.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/manifest.hpp"
#include "precache/reader/dataset.hpp"
#include "reader/shards/manifest_watch.hpp"
#include "reader/shards/mapped_shard.hpp"

namespace precache {

/// The shards of a dataset: which sample is where, and mappings that are made when first needed and
/// kept within a limit.
///
/// Any number of threads may use one at once.
class ShardSet {
 public:
  struct Shard {
    std::filesystem::path path;
    ShardIndex index;
    std::optional<FileState> state{};  // when it was scanned
    // Of those that a manifest describes, instead of a state:
    std::uint32_t crc32c = 0;
    std::shared_ptr<const ManifestWatch> watch{};
    std::shared_ptr<const MappedShard> mapped{};  // if it is mapped already
  };

  /// Throws CorruptData if an index does not fit its shard.
  ShardSet(std::vector<Shard> shards, std::vector<std::string> classes, const OpenOptions& options);

  [[nodiscard]] std::uint64_t samples() const { return first_samples_.back(); }
  [[nodiscard]] std::size_t shard_count() const { return shards_.size(); }
  [[nodiscard]] const std::vector<std::string>& classes() const { return classes_; }
  [[nodiscard]] const std::optional<TensorSpec>& spec() const { return spec_; }
  /// Why there is no spec.
  [[nodiscard]] const std::string& unsupported_reason() const { return unsupported_reason_; }
  /// What some samples have in place of a label, with its file; empty if there is none.
  [[nodiscard]] const std::string& mismatched_labels() const { return mismatched_labels_; }
  /// If there are no labels: what there is that may be meant as them, with its file.
  [[nodiscard]] const std::string& maybe_labels() const { return maybe_labels_; }
  [[nodiscard]] bool verify_on_read() const { return options_.verify_on_read; }
  [[nodiscard]] bool handle_bus_errors() const { return options_.handle_bus_errors; }

  struct Location {
    std::size_t shard = 0;
    std::uint64_t row = 0;  // in the shard
  };
  /// REQUIRES: sample < samples().
  [[nodiscard]] Location locate(std::uint64_t sample) const;
  /// How many samples of the shard are at `place` or behind it.
  [[nodiscard]] std::uint64_t rows_from(const Location& place) const {
    return shards_[place.shard].index.samples - place.row;
  }

  /// Maps the shard if it is not mapped. Throws IoError, and CorruptData if its size is not that of
  /// its index, it is another file than at first, or the dataset was replaced since it was opened.
  /// That is noticed whenever a shard is mapped, and by the way at most some 50 ms later.
  [[nodiscard]] std::shared_ptr<const MappedShard> map(std::size_t shard) const;

  [[nodiscard]] const ColumnValues& values(std::size_t shard) const { return values_[shard]; }
  [[nodiscard]] const ShardIndex& index(std::size_t shard) const { return shards_[shard].index; }
  /// How far the payloads of neighbours lie apart; none if the distances differ.
  [[nodiscard]] const std::optional<std::uint64_t>& stride(std::size_t shard) const {
    return strides_[shard];
  }

 private:
  struct Entry {
    std::shared_ptr<const MappedShard> mapped;
    std::optional<FileState> first_state;     // when it was mapped for the first time
    std::list<std::size_t>::iterator recent;  // valid while mapped
  };

  /// Where labels are names, makes numbers of all shards' together of them.
  void number_names();
  /// Checks from time to time what others may change while a shard is mapped.
  void look_around(std::size_t shard) const;
  /// Puts our handler of SIGBUS in front again, where another was installed since.
  void keep_handler() const;
  /// Throws CorruptData if the shard's manifest was replaced by one that says something else.
  void check_manifest(std::size_t shard, Ask ask) const;
  /// Whether a manifest says of the shards that have this watch what was said of them before.
  [[nodiscard]] bool agrees_with(const Manifest& manifest, const ManifestWatch& watch) const;
  /// Throws as check_manifest() does where that is the reason that the file is missing.
  [[nodiscard]] std::shared_ptr<const MappedShard> open_mapping(std::size_t shard) const;
  /// Takes away labels that are captions.
  void drop_captions();
  void note_missing_labels();
  /// Null if the shard is not mapped.
  [[nodiscard]] std::shared_ptr<const MappedShard> use_mapped(std::size_t shard) const;

  std::vector<Shard> shards_;
  std::vector<ColumnValues> values_;
  std::vector<std::optional<std::uint64_t>> strides_;
  std::vector<std::uint64_t> first_samples_;  // by shard, and the total
  std::vector<std::string> classes_;
  OpenOptions options_;
  std::optional<TensorSpec> spec_;
  std::string unsupported_reason_;
  mutable std::atomic<std::int64_t> next_handler_ns_{0};
  mutable std::atomic<std::uint64_t> generation_{0};  // of forks, when the handler was looked at
  std::string mismatched_labels_;
  std::string maybe_labels_;

  mutable ForkSafeMutex mutex_;
  mutable std::vector<Entry> entries_;
  mutable std::list<std::size_t> recent_;  // mapped shards, the one used last first
};

}  // namespace precache
