// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/base/file.hpp"

namespace precache {

/// An open folder. It is never reached through a symbolic link of its name, and neither is anything
/// that is removed in it: what goes lies in this very folder.
class Folder {
 public:
  struct Entry {
    std::string name;
    bool is_file = false;    // a regular file, not a link to one
    bool is_folder = false;  // likewise
  };

  /// Throws IoError, with ELOOP or ENOTDIR if the path is a symbolic link or a file.
  explicit Folder(const std::filesystem::path& path);
  /// A folder in `parent`. Throws IoError.
  Folder(const Folder& parent, const std::string& name);

  /// All but "." and "..", in no order. Throws IoError.
  [[nodiscard]] std::vector<Entry> entries() const;
  /// Removes a file or a link. Returns whether it is gone now.
  bool remove_file(const std::string& name) const noexcept;
  /// Removes a folder if it is empty. Returns whether it is gone now.
  bool remove_folder(const std::string& name) const noexcept;

 private:
  File file_;
};

/// Whether the name itself is a symbolic link, wherever that leads.
[[nodiscard]] bool is_link(const std::filesystem::path& path);

}  // namespace precache
