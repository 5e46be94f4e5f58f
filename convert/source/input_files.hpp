// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"
#include "convert/source/source.hpp"
#include "formats/os/file.hpp"

namespace precache {

class SampleReader;

/// The bytes of a source's samples, and where they come from. Borrows what it is made of. Any
/// number of threads may use one at once.
class InputFiles {
 public:
  /// `root` is the folder of a source that has no shards.
  InputFiles(const std::filesystem::path& root, const Source& source)
      : root_(root), source_(source), files_(source.shards.size()) {}

  [[nodiscard]] const Source& source() const { return source_; }
  /// The path, or `shard.tar:path`.
  [[nodiscard]] std::string origin(const ListedFile& listed) const;
  /// The same with its folder, for errors.
  [[nodiscard]] std::filesystem::path full_origin(const ListedFile& listed) const;
  /// For compare_content(). It borrows from this, and needs the listing of the source.
  [[nodiscard]] std::function<std::uint32_t(std::uint64_t)> crc_reader() const;
  /// One for each thread. It borrows from this.
  [[nodiscard]] std::unique_ptr<SampleReader> reader() const;

 private:
  friend class SampleReader;

  /// The file that holds a sample, as it was listed.
  [[nodiscard]] FileStamp file_of(const ListedFile& listed) const;
  /// Opens that file. A few hundred shards stay open.
  [[nodiscard]] std::shared_ptr<const File> open(const ListedFile& listed) const;

  const std::filesystem::path& root_;
  const Source& source_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const File>> files_;  // by shard; null: not open
  mutable std::deque<std::uint32_t> opened_;                // longest open first
};

/// Reads samples into one buffer, by one thread at a time.
class SampleReader {
 public:
  explicit SampleReader(const InputFiles& files) : files_(files) {}

  /// Reads one sample; its bytes are valid until the next call. Rejects a sample of more than
  /// 256 MiB, which cannot be an image. Of a large file that is not an image, reads only the head.
  ///
  /// Retries errors that may pass (EIO, ESTALE, EMFILE, ENOMEM and such) a few times. Throws
  /// IoError when they persist, and when the file is gone or differs from the listing.
  std::optional<Rejection> read(const ListedFile& listed, std::span<const std::byte>& bytes);

 private:
  void read_once(const ListedFile& listed);

  const InputFiles& files_;
  std::vector<std::byte> buffer_;
};

}  // namespace precache
