// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"
#include "convert/source/listing.hpp"

namespace precache {

/// Samples that take more bytes are rejected.
inline constexpr std::uint64_t kLargestSample = std::uint64_t{256} << 20;

/// Reads the samples of a listing into one buffer, by one thread at a time.
class SampleReader {
 public:
  virtual ~SampleReader() = default;

  /// The bytes of a sample stay until the next call. One too large to be an image is rejected.
  ///
  /// Errors that may pass (EIO, ESTALE, EMFILE, ENOMEM and such) are tried again a few times.
  /// Throws IoError when they stay, and when the file is gone or differs from the listing.
  virtual std::optional<Rejection> read(const ListedFile& listed,
                                        std::span<const std::byte>& bytes) = 0;
};

/// Ends a build whose source is not what it was.
[[noreturn]] void throw_source_changed(const std::filesystem::path& path);

/// Reads files below a folder. Of a large one that is no image it reads only the first bytes.
class FileReader : public SampleReader {
 public:
  explicit FileReader(std::filesystem::path root) : root_(std::move(root)) {}

  std::optional<Rejection> read(const ListedFile& listed,
                                std::span<const std::byte>& bytes) override;

 private:
  void read_once(const std::filesystem::path& path, const ListedFile& listed);

  std::filesystem::path root_;
  std::vector<std::byte> buffer_;
};

}  // namespace precache
