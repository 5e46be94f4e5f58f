// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/shard/encoded_shard.hpp"
#include "formats/shard/framing.hpp"

/// Everything that writes HDF5 files. All of it throws Unsupported in a build without HDF5.
namespace precache {

void check_encoded_hdf5();

[[nodiscard]] std::unique_ptr<const Framing> make_hdf5_framing(
    const TensorSpec& spec, const NameLimits& limits, const std::vector<std::string>& classes,
    const std::vector<NamedColumn>& named = {});

/// The datasets are /images (bytes of variable length), /labels and /keys. Throws IoError.
[[nodiscard]] std::unique_ptr<EncodedShard> make_encoded_hdf5(
    const std::filesystem::path& path, const NameLimits& limits,
    const std::vector<std::string>& classes);

namespace hdf5 {

/// Keeps the HDF5 library from running its exit handler, which crashes (1.10.8) after a failed
/// write. Only the first call in a process has an effect, and only if nothing has used the library
/// before. Readers do not call it: their program may have HDF5 files that the handler must close.
void forgo_exit_handler();

/// The contents of a file without rows, which shows the rows of shards, one shard after another.
struct VirtualShards {
  struct ShownShard {
    std::string file;  // next to the virtual file, so that the folder can move
    std::uint64_t samples = 0;
  };
  TensorSpec spec;
  std::size_t key_bytes = 1;
  std::vector<std::string> classes;
  std::vector<ShownShard> shards;
  std::vector<NamedColumn> columns{};
};

/// Writes a file with virtual datasets `/images`, `/labels` (with the class names), `/keys` and one
/// for each named column, and syncs it. Opens no shard; equal shards give equal bytes. Throws
/// IoError.
void write_virtual_file(const std::filesystem::path& path, const VirtualShards& shown);

/// Whether the file at `path` is an HDF5 file whose `/images` is virtual; false without HDF5.
[[nodiscard]] bool is_virtual_file(const std::filesystem::path& path);

}  // namespace hdf5
}  // namespace precache
