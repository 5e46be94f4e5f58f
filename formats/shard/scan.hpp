// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "formats/shard/shard_index.hpp"

namespace precache {

/// Detects the format of a shard from its content. The name decides only for an empty file, which
/// may be a TFRecord file without records.
///
/// Throws Unsupported, with the kind of the file, for compressed files, Git LFS pointers and other
/// files that are not shards; CorruptData if the name says that it should be a shard.
[[nodiscard]] Format detect_format(std::span<const std::byte> file,
                                   const std::filesystem::path& path);

/// Whether a file starts like a shard. Some compressed files can be distinguished from shards only
/// by this.
[[nodiscard]] bool begins_as_shard(std::span<const std::byte> head);

/// Checks the first bytes that a compressed file unpacks to. Only a shard is unpacked in full:
/// another file may be a thousand times larger than its compressed size.
class UnpackedHead {
 public:
  /// `path` is for messages.
  explicit UnpackedHead(std::filesystem::path path) : path_(std::move(path)) {}

  /// Takes the next unpacked bytes. Throws as detect_format() does if the first MiB is not the
  /// start of a shard.
  void see(std::span<const std::byte> bytes);

 private:
  std::filesystem::path path_;
  std::vector<std::byte> head_;
  bool is_shard_ = false;
};

/// Finds every sample of a shard without a manifest. `file` is the whole file, mapped; `path` is
/// for messages, and for the helper process that scans HDF5 files. `helper` is the `precache`
/// command; empty: the one on PATH. Does not touch the pages of payloads.
///
/// Payloads of unknown type in tar and TFRecord files (raw bytes, arrays of `<u2`) get the spec
/// `given` if they have its size. `keys` names the image and the label.
///
/// One pass, in time and memory linear in the size of the file. Throws CorruptData, with the
/// offset, for bytes that break the format, Unsupported for samples that cannot be mapped, and
/// InvalidArgument if the file does not have what `keys` names.
[[nodiscard]] ShardIndex scan_shard(std::span<const std::byte> file,
                                    const std::filesystem::path& path,
                                    const std::optional<TensorSpec>& given = {},
                                    const SampleKeys& keys = {},
                                    const std::filesystem::path& helper = {});

namespace tar {
/// Indexes all samples that SampleFinder finds in an archive.
///
/// A sample's payload is the array of its `npy`, else its image (JPEG and PNG before other kinds),
/// else the first file that is not a label; find_label() chooses its label. Throws Unsupported also
/// for payloads in sparse entries.
[[nodiscard]] ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                              const std::optional<TensorSpec>& given, const SampleKeys& keys = {});
}  // namespace tar

namespace tfrecord {
/// Indexes all samples that SampleFinder finds in a TFRecord file. Checks the CRCs of lengths, not
/// those of data. The shape of raw bytes is known only if features state it; their type is then
/// uint8.
[[nodiscard]] ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                              const std::optional<TensorSpec>& given, const SampleKeys& keys = {});
}  // namespace tfrecord

}  // namespace precache
