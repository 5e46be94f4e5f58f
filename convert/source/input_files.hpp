// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "convert/source/sample_reader.hpp"
#include "convert/source/source.hpp"

namespace precache {

/// The bytes of a source's samples, and where they come from. Borrows what it is made of. Any
/// number of threads may use one at once.
class InputFiles {
 public:
  /// `root` is the folder of a source that has no shards.
  InputFiles(const std::filesystem::path& root, const Source& source)
      : root_(root), source_(source), shards_(source.shards) {}

  [[nodiscard]] const Source& source() const { return source_; }
  /// The path, or `shard.tar:path`.
  [[nodiscard]] std::string origin(std::uint64_t sample) const;
  /// With the folder that it lies in, for errors.
  [[nodiscard]] std::filesystem::path full_origin(std::uint64_t sample) const;
  /// For compare_content(). It borrows from this.
  [[nodiscard]] std::function<std::uint32_t(std::uint64_t)> crc_reader() const;
  /// One for each thread. It borrows from this.
  [[nodiscard]] std::unique_ptr<SampleReader> reader() const;

 private:
  const std::filesystem::path& root_;
  const Source& source_;
  mutable ShardFileCache shards_;
};

}  // namespace precache
