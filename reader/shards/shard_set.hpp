// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/os/fork.hpp"
#include "formats/shard/column_values.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/manifest.hpp"
#include "precache/reader/dataset.hpp"
#include "reader/shards/manifest_watch.hpp"
#include "reader/shards/mapped_shard.hpp"

namespace precache {

/// The shards of a dataset. Knows the position of each sample, and maps shards when they are first
/// needed, up to a limit.
///
/// Any number of threads may use one at once.
class ShardSet {
 public:
  struct IndexedShard {
    std::string path;  // a filesystem::path takes several times the memory
    ShardIndex index;
    std::optional<FileState> state{};  // at the time of the scan
    // For shards with a manifest, instead of a state:
    std::uint32_t crc32c = 0;
    std::shared_ptr<const ManifestWatch> watch{};
    std::shared_ptr<const MappedShard> mapped{};  // if it is already mapped
  };

  /// Throws CorruptData if an index does not fit its shard.
  ShardSet(std::vector<IndexedShard> shards, std::vector<std::string> classes,
           const OpenOptions& options, StoredRecipe recipe = {});

  [[nodiscard]] std::uint64_t samples() const { return first_samples_.back(); }
  [[nodiscard]] std::size_t shard_count() const { return shards_.size(); }
  [[nodiscard]] const std::vector<std::string>& classes() const { return classes_; }
  [[nodiscard]] const StoredRecipe& recipe() const { return recipe_; }
  [[nodiscard]] const std::optional<TensorSpec>& spec() const { return spec_; }
  /// The named columns that all shards have; null if there are none, or shards differ in them.
  [[nodiscard]] const NamedColumns& named() const { return named_; }
  /// The number of a named column. Throws InvalidArgument if there is no such column; `option` is
  /// the one that names it, if there is one.
  [[nodiscard]] std::size_t named_column(std::string_view name, std::string_view option = {}) const;
  /// The reason if there is no spec.
  [[nodiscard]] const std::string& unsupported_reason() const { return unsupported_reason_; }
  /// Describes a value that some samples have instead of a label, and its file; else empty.
  [[nodiscard]] const std::string& mismatched_labels() const { return mismatched_labels_; }
  /// If there are no labels: describes values that may be meant as labels, and their file.
  [[nodiscard]] const std::string& maybe_labels() const { return maybe_labels_; }
  [[nodiscard]] bool verify_on_read() const { return options_.verify_on_read; }
  [[nodiscard]] bool handle_bus_errors() const { return options_.handle_bus_errors; }

  struct Location {
    std::size_t shard = 0;
    std::uint64_t row = 0;  // in the shard
  };
  /// REQUIRES: sample < samples().
  [[nodiscard]] Location locate(std::uint64_t sample) const;
  /// The number of samples from `place` to the end of the shard.
  [[nodiscard]] std::uint64_t rows_from(const Location& place) const {
    return shards_[place.shard].index.samples - place.row;
  }

  /// Maps the shard if it is not mapped. Throws IoError, and CorruptData if its size is not that of
  /// its index, if the file was replaced, or if the dataset was replaced since it was opened. This
  /// is checked whenever a shard is mapped, and at other calls every 50 ms.
  [[nodiscard]] std::shared_ptr<const MappedShard> map(std::size_t shard) const;

  [[nodiscard]] const ColumnValues& values(std::size_t shard) const { return values_[shard]; }
  [[nodiscard]] const ShardIndex& index(std::size_t shard) const { return shards_[shard].index; }
  /// The distance between the payloads of neighbours; none if it varies.
  [[nodiscard]] const std::optional<std::uint64_t>& stride(std::size_t shard) const {
    return strides_[shard];
  }

 private:
  struct Entry {
    std::shared_ptr<const MappedShard> mapped;
    std::optional<FileState> first_state;     // of the first mapping
    std::list<std::size_t>::iterator recent;  // valid while mapped
  };

  /// Turns labels that are names into numbers, the same in all shards.
  void number_names();
  /// Checks every kLookEveryNs whether the signal handler or the manifest was replaced.
  void look_around(std::size_t shard) const;
  /// Installs the handler of SIGBUS again if another one was installed since.
  void keep_handler() const;
  /// Throws CorruptData if the manifest of the shard was replaced by a different one.
  void check_manifest(std::size_t shard, Ask ask) const;
  /// True if a manifest describes the shards of this watch as before.
  [[nodiscard]] bool agrees_with(const Manifest& manifest, const ManifestWatch& watch) const;
  /// If the file is missing because the dataset was replaced, throws the error of check_manifest().
  [[nodiscard]] std::shared_ptr<const MappedShard> open_mapping(std::size_t shard) const;
  /// Removes labels that are captions.
  void drop_captions();
  void note_missing_labels();
  void note_columns();
  /// Null if the shard is not mapped.
  [[nodiscard]] std::shared_ptr<const MappedShard> use_mapped(std::size_t shard) const;

  std::vector<IndexedShard> shards_;
  std::vector<ColumnValues> values_;
  std::vector<std::optional<std::uint64_t>> strides_;
  std::vector<std::uint64_t> first_samples_;  // by shard, and the total
  std::vector<std::string> classes_;
  OpenOptions options_;
  StoredRecipe recipe_;
  std::optional<TensorSpec> spec_;
  std::string unsupported_reason_;
  NamedColumns named_;
  bool differs_in_columns_ = false;
  mutable std::atomic<std::int64_t> next_handler_ns_{0};
  mutable std::atomic<std::uint64_t> generation_{0};  // of forks, at the last check of the handler
  std::string mismatched_labels_;
  std::string maybe_labels_;

  mutable ForkSafeMutex mutex_;
  mutable std::vector<Entry> entries_;
  mutable std::list<std::size_t> recent_;  // mapped shards, the most recently used first
};

}  // namespace precache
