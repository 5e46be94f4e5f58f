// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "formats/os/temporary_file.hpp"
#include "precache/convert/job.hpp"

namespace precache {

/// The report of skipped samples in a folder, `skipped.tsv`, while the lines of one split are
/// replaced; other splits keep theirs. Lines go to a temporary file at once, because there may be
/// millions.
class SkippedReport {
 public:
  SkippedReport(const std::filesystem::path& folder, std::string split);

  /// Adds a line. Throws IoError.
  void add(const SkippedSample& sample);
  /// Adds the lines of the split in the report of another folder. Throws IoError.
  void add_lines_of(const std::filesystem::path& folder);
  /// Replaces the report, or removes it if there are no lines. Throws IoError.
  void publish();

  /// Throws InvalidArgument if the folder has another file of this name.
  static void check(const std::filesystem::path& folder);
  /// Whether the report of a folder names this sample of the split.
  static bool names(const std::string& lines, const std::string& path);
  /// The lines of one split in the report of a folder.
  [[nodiscard]] static std::string lines_of(const std::filesystem::path& folder,
                                            const std::string& split);

 private:
  void begin();
  void add_line(std::string_view line);
  void flush();

  std::filesystem::path path_;
  std::string split_;
  std::unique_ptr<TemporaryFile> file_;  // none until there is a line
  std::uint64_t written_ = 0;
  std::string buffer_;
};

/// A field of a tab-separated line in the report of skipped samples.
[[nodiscard]] std::string tsv_escaped(std::string_view text);

}  // namespace precache
