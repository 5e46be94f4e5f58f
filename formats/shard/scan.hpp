// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"

namespace precache {

/// Tells the format of a shard by its content. Only of an empty file, which is a TFRecord file
/// without records, the name decides.
///
/// Throws Unsupported, naming what it is, for compressed files, Git LFS pointers and all else that
/// is no shard; CorruptData where the name says that it should be one.
[[nodiscard]] Format detect_format(std::span<const std::byte> file,
                                   const std::filesystem::path& path);

/// Whether the first bytes of a file are those of a shard: some compressed ones can be told from
/// them only by that.
[[nodiscard]] bool begins_as_shard(std::span<const std::byte> head);

/// Judges a compressed file by the first bytes that it unpacks to. Only a shard is unpacked in
/// full: another file may be a thousand times as large as it seems.
class UnpackedHead {
 public:
  /// `path` is for messages.
  explicit UnpackedHead(std::filesystem::path path) : path_(std::move(path)) {}

  /// Looks at the next unpacked bytes. Throws as detect_format() does when the first MiB is not
  /// that of a shard.
  void see(std::span<const std::byte> bytes);

 private:
  std::filesystem::path path_;
  std::vector<std::byte> head_;
  bool is_shard_ = false;
};

/// Reads where every sample of a shard lies, without a manifest. `file` is the whole file, mapped;
/// `path` is for messages, and for the process that scans HDF5 files: `helper` is its program, the
/// `precache` command; empty: the one on PATH. The pages of payloads are not touched.
///
/// Payloads of tar and TFRecord files that do not tell what they are (raw bytes, arrays of `<u2`),
/// but have the size of `given`, are taken for that. `keys` names what is the image and the label.
///
/// One pass, in time and memory linear in the size of the file. Throws CorruptData where bytes
/// break the format, with their offset, Unsupported for what cannot be read by a mapping, and
/// InvalidArgument if the file does not have what `keys` names.
[[nodiscard]] ShardIndex scan_shard(std::span<const std::byte> file,
                                    const std::filesystem::path& path,
                                    const std::optional<TensorSpec>& given = {},
                                    const SampleKeys& keys = {},
                                    const std::filesystem::path& helper = {});

}  // namespace precache
