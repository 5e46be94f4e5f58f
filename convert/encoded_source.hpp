// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "convert/decode/image_decoder.hpp"
#include "convert/source/file_reader.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/source.hpp"
#include "precache/convert/repack.hpp"
#include "reader/shard_set.hpp"

namespace precache {

/// Stands beside shards of encoded images: the names of their classes, one a line.
inline constexpr const char* kClassesName = "classes.txt";

/// Encoded images: files of a folder, or samples of shards. Any number of threads may use one at
/// once.
class EncodedSource {
 public:
  /// Lists the source. Throws InvalidArgument, IoError, CorruptData, and Unsupported for shards
  /// whose samples are tensors.
  explicit EncodedSource(const RepackOptions& options);
  EncodedSource(const EncodedSource&) = delete;
  EncodedSource& operator=(const EncodedSource&) = delete;

  [[nodiscard]] const Source& source() const { return source_; }
  [[nodiscard]] const Listing& listing() const { return source_.listing; }
  [[nodiscard]] const Keys& keys() const { return *keys_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// Changes when shards do; empty for a folder, whose files are checked as they are read.
  [[nodiscard]] const std::string& shards_fingerprint() const { return fingerprint_; }

  /// Reads images, by one thread at a time.
  class Reader {
   public:
    explicit Reader(const EncodedSource& source) : source_(source), files_(source.folder_) {}
    /// The bytes stay until the next call. Throws IoError and CorruptData.
    std::optional<Rejection> read(std::uint64_t sample, std::span<const std::byte>& bytes);

   private:
    const EncodedSource& source_;
    FileReader files_;
    std::vector<std::byte> buffer_;
  };

 private:
  void list_shards_of(const RepackOptions& options);

  std::filesystem::path folder_;
  Source source_;
  std::shared_ptr<const ShardSet> shards_;  // none: a folder
  std::string fingerprint_;
  std::optional<Keys> keys_;
};

}  // namespace precache
