// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"
#include "convert/source/source.hpp"
#include "formats/os/file.hpp"

namespace precache {

/// Reads the samples of a listing into one buffer, by one thread at a time.
class SampleReader {
 public:
  virtual ~SampleReader() = default;

  /// Reads one sample; its bytes are valid until the next call. Rejects a sample of more than
  /// 256 MiB, which cannot be an image.
  ///
  /// Retries errors that may pass (EIO, ESTALE, EMFILE, ENOMEM and such) a few times. Throws
  /// IoError when they persist, and when the file is gone or differs from the listing.
  std::optional<Rejection> read(const ListedFile& listed, std::span<const std::byte>& bytes);

 private:
  /// The file that a sample lies in, for errors.
  [[nodiscard]] virtual std::filesystem::path file_of(const ListedFile& listed) const = 0;
  virtual void read_once(const ListedFile& listed, std::vector<std::byte>& buffer) = 0;
  /// The image within the bytes that were read.
  virtual std::optional<Rejection> find_image(const ListedFile&, std::span<const std::byte>&) {
    return std::nullopt;
  }

  std::vector<std::byte> buffer_;
};

/// Reads files below a folder. Of a large file that is not an image it reads only the head.
class FileReader : public SampleReader {
 public:
  explicit FileReader(std::filesystem::path root) : root_(std::move(root)) {}

 private:
  [[nodiscard]] std::filesystem::path file_of(const ListedFile& listed) const override {
    return root_ / listed.path;
  }
  void read_once(const ListedFile& listed, std::vector<std::byte>& buffer) override;

  std::filesystem::path root_;
};

/// The shards of a source, of which some are open. Any number of threads may use one at once.
class ShardFileCache {
 public:
  /// Borrows `shards`.
  explicit ShardFileCache(const std::vector<SourceShard>& shards)
      : shards_(shards), files_(shards.size()) {}

  /// Throws IoError if it cannot be opened, or is not the file that was listed.
  [[nodiscard]] std::shared_ptr<const File> open(std::uint32_t shard);
  [[nodiscard]] const SourceShard& shard(std::uint32_t number) const { return shards_[number]; }

 private:
  const std::vector<SourceShard>& shards_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const File>> files_;  // null: not open
  std::deque<std::uint32_t> opened_;                // longest open first
};

/// Reads samples of shards.
class ShardReader : public SampleReader {
 public:
  explicit ShardReader(ShardFileCache& shards) : shards_(shards) {}

 private:
  [[nodiscard]] std::filesystem::path file_of(const ListedFile& listed) const override {
    return shards_.shard(listed.shard).data.path;
  }
  void read_once(const ListedFile& listed, std::vector<std::byte>& buffer) override;
  std::optional<Rejection> find_image(const ListedFile& listed,
                                      std::span<const std::byte>& bytes) override;

  ShardFileCache& shards_;
};

}  // namespace precache
