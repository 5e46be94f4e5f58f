// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

#include "convert/source/input_files.hpp"
#include "convert/source/source.hpp"

namespace precache {

/// A mask as it was listed.
struct Mask {
  std::string path;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;

  /// Borrows the path.
  [[nodiscard]] ListedFile listed() const { return {path, size, mtime_ns}; }
};

/// The bytes of MaskFiles::note().
inline constexpr std::size_t kMaskNoteBytes = 20;

/// The masks of a folder, one for each sample: a PNG file whose path in the folder is that of the
/// sample in the source, endings apart. Once the folder is listed, or if it never is, any number of
/// threads may use one at once.
class MaskFiles {
 public:
  /// Opens nothing: a part of a job knows its masks by their notes.
  explicit MaskFiles(std::filesystem::path folder);
  MaskFiles(const MaskFiles&) = delete;
  MaskFiles& operator=(const MaskFiles&) = delete;

  /// Lists the folder. Throws InvalidArgument if it is not a folder or two of its files belong to
  /// one sample, and IoError.
  void list();
  /// Changes when the name, the size or the modification time of a mask does.
  [[nodiscard]] std::uint64_t stamp() const { return masks_.stamp(); }
  /// The mask of the sample at this path. Throws InvalidArgument if none was listed.
  [[nodiscard]] Mask of(std::string_view path) const;
  /// The note that a plan keeps of that mask, and the mask that a note of a sample stands for.
  [[nodiscard]] std::string note(std::string_view path) const;
  [[nodiscard]] static Mask noted(std::string_view path, std::string_view note);
  /// The sizes of the masks of these samples, as a number that changes when one of them does.
  /// Throws as of() does.
  [[nodiscard]] std::uint64_t fingerprint(const Listing& samples) const;
  [[nodiscard]] const InputFiles& files() const { return files_; }

 private:
  std::filesystem::path folder_;
  Source no_shards_;
  InputFiles files_;
  Listing masks_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // by path without ending
};

}  // namespace precache
