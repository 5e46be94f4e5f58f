// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/format.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// The files that other readers need next to shards. docs/indexes.md has names and contents.
enum class SidecarKind {
  kDali,  // SHARD.idx, of tar and TFRecord, for NVIDIA DALI
  kWids,  // SPLIT.wids.json, of tar, for wids
  kVds,   // SPLIT.vds, of HDF5: a virtual dataset for any HDF5 reader
  kTfds,  // dataset_info.json and features.json, of TFRecord, for TensorFlow Datasets
};

[[nodiscard]] std::string_view name(SidecarKind kind);
/// "dali,wids" -> kinds, each once, in the order of the enumeration. Throws InvalidArgument for an
/// unknown name.
[[nodiscard]] std::vector<SidecarKind> parse_index_kinds(std::string_view names);

/// Throws InvalidArgument if shards of the format cannot have one of the kinds.
void check_sidecar_kinds(const std::vector<SidecarKind>& kinds, Format format);

struct SidecarOptions {
  std::vector<SidecarKind> kinds;    // empty: all kinds that fit the shards
  std::optional<std::string> split;  // none: all
};

struct WrittenIndex {
  SidecarKind kind = SidecarKind::kDali;
  std::filesystem::path file;
  std::uint64_t samples = 0;
};

/// An index that could not be written, and why.
struct MissingIndex {
  SidecarKind kind = SidecarKind::kDali;
  std::filesystem::path of;  // the shard or the folder
  std::string reason;
};

struct SidecarReport {
  std::vector<WrittenIndex> written;  // or found unchanged
  std::vector<MissingIndex>
      missing;  // of kinds that were not requested by name, and of empty shards
};

/// Writes indexes next to the shards that `path` names: a dataset folder, shards of any origin, or
/// a pattern of them. A shard of a precache dataset stands for its whole split.
///
/// Each file is written under a temporary name and renamed. An existing file is replaced only if it
/// is an index of the same kind, and left alone if it is the same. The folder is locked meanwhile,
/// as during a build. Runs in the caller's TBB arena.
///
/// Throws InvalidArgument for kinds that do not fit the shards and for files that would be lost,
/// Unsupported if the reader of a requested kind cannot read the shards, CorruptData, and IoError,
/// including when another process is writing to the folder.
SidecarReport write_sidecars(const std::filesystem::path& path, const SidecarOptions& options = {});

}  // namespace precache
