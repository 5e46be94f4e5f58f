// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <string>

#include "convert/source/source.hpp"
#include "formats/os/file.hpp"

namespace precache {

/// Progress of unpacking, and a way to stop it.
struct UnpackProgress {
  std::atomic<std::uint64_t>& bytes;
  const std::atomic<bool>& stop;
};

/// Thrown if `stop` is set before everything is unpacked.
struct UnpackingStopped {};

/// Makes plain files of shards that cannot be read at any offset: compressed ones, and pipes.
///
/// The files are in a separate folder, which the destructor removes unless keep() was called. Any
/// number of threads may use one at once.
class Unpacker {
 public:
  /// Makes a folder in `parent` when it is needed.
  Unpacker(std::filesystem::path parent, UnpackProgress progress)
      : parent_(std::move(parent)), progress_(progress) {}
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker();
  void keep() { is_kept_ = true; }

  /// Makes a plain copy, with this number, of a pipe or a compressed file and returns its stamp. A
  /// plain file is not copied: returns its own stamp.
  ///
  /// Throws CorruptData for broken compressed data, Unsupported if it is compressed with something
  /// other than gzip or zlib or is not a shard, IoError, and UnpackingStopped.
  FileStamp unpack(const File& shard, std::size_t number);

  using Append = std::function<void(std::span<const std::byte>)>;
  /// Writes what `fill` appends to a new file `name`. `shard` is for messages.
  FileStamp write(const std::filesystem::path& shard, const std::string& name,
                  const std::function<void(const Append&)>& fill);

 private:
  std::filesystem::path path_of(const std::string& name);

  std::filesystem::path parent_;
  UnpackProgress progress_;
  std::mutex mutex_;
  std::filesystem::path folder_;  // empty until it is made
  bool is_kept_ = false;
};

/// The stamp of an open file.
[[nodiscard]] FileStamp stamp_of(const File& file);

}  // namespace precache
