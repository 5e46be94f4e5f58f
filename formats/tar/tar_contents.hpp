// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/tar/tar_finder.hpp"
#include "precache/formats/contents.hpp"

namespace precache::tar {

/// Counts what tar archives hold: kinds of entries, extensions, and how they group to samples.
class ContentsSurvey {
 public:
  /// Walks over one more archive; `file` is the whole of it. Throws CorruptData and Unsupported
  /// as EntryCursor does; what stood before that counts.
  void add(std::span<const std::byte> file, const std::filesystem::path& path);
  [[nodiscard]] TarContents result() const;

 private:
  using Extensions = std::vector<std::string>;

  void take(const FoundGroup& group);
  void take(const OtherEntry& other);
  void count_entry(EntryType type);

  TarContents counts_;
  std::map<std::string, ValueRange, std::less<>> extensions_;
  std::map<Extensions, std::uint64_t> patterns_;
};

}  // namespace precache::tar
