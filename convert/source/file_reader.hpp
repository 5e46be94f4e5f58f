// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "convert/decode/image_decoder.hpp"
#include "convert/source/listing.hpp"

namespace precache {

/// Reads the files of a listing into one buffer, by one thread at a time.
class FileReader {
 public:
  explicit FileReader(std::filesystem::path root) : root_(std::move(root)) {}

  /// The bytes of a file stay until the next call; of a large one that is no image, only the first.
  /// A file too large to be an image is rejected.
  ///
  /// Errors that may pass (EIO, ESTALE, EMFILE, ENOMEM and such) are tried again a few times.
  /// Throws IoError when they stay, and when the file is gone or differs from the listing.
  std::optional<Rejection> read(const ListedFile& listed, std::span<const std::byte>& bytes);

 private:
  void read_once(const std::filesystem::path& path, const ListedFile& listed);

  std::filesystem::path root_;
  std::vector<std::byte> buffer_;
};

}  // namespace precache
