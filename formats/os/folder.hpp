// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/os/file.hpp"

namespace precache {

/// An open folder. Symbolic links in it are never followed, so only its own entries are removed.
class Folder {
 public:
  struct Entry {
    std::string name;
    bool is_file = false;    // a regular file, not a link to one
    bool is_folder = false;  // a folder, not a link to one
  };

  enum class Links { kRefuse, kFollow };

  /// Throws IoError, with ELOOP or ENOTDIR if the path is a file or a symbolic link that must not
  /// be followed.
  explicit Folder(const std::filesystem::path& path, Links links = Links::kRefuse);
  /// A folder in `parent`. Throws IoError.
  Folder(const Folder& parent, const std::string& name);

  /// All entries but "." and "..", in no particular order. Throws IoError.
  [[nodiscard]] std::vector<Entry> entries() const;
  /// Removes a file or a link. Returns whether it is gone now.
  bool remove_file(const std::string& name) const noexcept;
  /// Removes a folder if it is empty. Returns whether it is gone now.
  bool remove_folder(const std::string& name) const noexcept;

 private:
  File file_;
};

/// Whether the path itself is a symbolic link, whatever its target.
[[nodiscard]] bool is_link(const std::filesystem::path& path);

}  // namespace precache
