// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "precache/formats/tensor_spec.hpp"

namespace precache::hdf5 {

/// What a file shows that has no rows of its own: those of shards, one shard after the other.
struct VirtualShards {
  struct Shard {
    std::string file;  // beside the virtual file, so that the folder can move
    std::uint64_t samples = 0;
  };
  TensorSpec spec;
  std::size_t key_bytes = 1;
  std::vector<std::string> classes;
  std::vector<Shard> shards;
};

/// Writes a file with virtual datasets `/images`, `/labels` (with the class names) and `/keys`,
/// and syncs it. Opens no shard; equal shards give equal bytes. Throws IoError, and Unsupported in
/// a build without HDF5.
void write_virtual_file(const std::filesystem::path& path, const VirtualShards& shown);

/// Whether the file at `path` is of HDF5 and its `/images` virtual.
[[nodiscard]] bool is_virtual_file(const std::filesystem::path& path);

}  // namespace precache::hdf5
