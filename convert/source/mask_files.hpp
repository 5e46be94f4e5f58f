// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <unordered_map>

#include "convert/source/input_files.hpp"
#include "convert/source/source.hpp"

namespace precache {

/// The masks of a folder, one for each sample: a PNG file whose path in the folder is that of the
/// sample in the source, endings apart. Immutable, so any number of threads may use one at once.
class MaskFiles {
 public:
  /// Lists the folder. Throws InvalidArgument if it is not a folder or two of its files belong to
  /// one sample, and IoError.
  explicit MaskFiles(std::filesystem::path folder);
  MaskFiles(const MaskFiles&) = delete;
  MaskFiles& operator=(const MaskFiles&) = delete;

  /// Changes when the name, the size or the modification time of a mask does.
  [[nodiscard]] std::uint64_t stamp() const { return source_.listing.stamp(); }
  /// The mask of the sample at this path, as listed. Throws InvalidArgument if there is none.
  [[nodiscard]] ListedFile of(std::string_view path) const;
  /// The sizes of the masks of these samples, as a number that changes when one of them does.
  /// Throws as of() does.
  [[nodiscard]] std::uint64_t fingerprint(const Listing& samples) const;
  [[nodiscard]] const InputFiles& files() const { return files_; }

 private:
  std::filesystem::path folder_;
  Source source_;
  InputFiles files_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // by path without ending
};

}  // namespace precache
