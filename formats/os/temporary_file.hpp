// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "formats/os/file.hpp"

namespace precache {

/// A part of the names of temporary files that no other attempt has: "HOST.NUMBER.PID.RANDOM".
///
/// Two processes may do the same work at once, on machines that do not share locks. They write
/// equal bytes to different names, and the last rename wins. The name says which process made a
/// file, so that the files of a killed process can be found and removed.
[[nodiscard]] std::string attempt_name();

/// Whether `name` has the form "X.ATTEMPT" or "X.ATTEMPT.SUFFIX".
[[nodiscard]] bool has_attempt_name(std::string_view name);

/// Whether `name` has that form and names a process that ran on this machine and has ended. False
/// for processes of other machines, which may still be running.
[[nodiscard]] bool is_abandoned(std::string_view name);

/// A file that appears under its final name complete and synced, or not at all.
///
/// Until commit() it has a temporary name next to the final one; the destructor removes it.
class TemporaryFile {
 public:
  /// Throws IoError if the file cannot be created. A symbolic link is never followed.
  explicit TemporaryFile(const std::filesystem::path& final_path);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  [[nodiscard]] File& file() { return file_; }
  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  /// Syncs the file, renames it and syncs the folder. Throws IoError.
  void commit();

 private:
  std::filesystem::path final_path_;
  File file_;
  bool committed_ = false;
};

/// Writes a file through a TemporaryFile. Throws IoError.
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace precache
