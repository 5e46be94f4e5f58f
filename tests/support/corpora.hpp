// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace precache::test {

/// Third-party files next to the repository. Tests that need them are skipped if they are missing.
inline std::filesystem::path corpora() { return PRECACHE_TEST_CORPORA; }

/// The files of one corpus with these extensions (none given: all), sorted; none if it is missing.
inline std::vector<std::filesystem::path> corpus(const std::string& name,
                                                 const std::set<std::string>& extensions = {}) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  const auto folder = std::filesystem::recursive_directory_iterator(corpora() / name, error);
  if (error) return files;
  for (const auto& entry : folder) {
    const std::string extension = entry.path().extension().string();
    const bool wanted = extensions.empty() ? extension != ".tsv" : extensions.contains(extension);
    if (entry.is_regular_file() && wanted) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline const std::set<std::string> kJpegExtensions{".jpg", ".jpeg", ".JPEG", ".JPG", ".mpo"};
inline const std::set<std::string> kPngExtensions{".png", ".PNG"};

}  // namespace precache::test
