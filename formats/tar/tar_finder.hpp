// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/tar/tar_entries.hpp"
#include "formats/tar/webdataset.hpp"

/// Finds the samples of third-party tar archives. The reader, build, inspect and the sidecars all
/// use it, so that they cannot disagree.
namespace precache::tar {

/// A file of an archive. A hard link to an earlier file is also a file, with the bytes of its
/// target.
struct FoundFile {
  std::string name;       // as in the archive
  std::string path;       // the name without "./", "//" and slashes around it
  std::string extension;  // the part after the first dot of the base name, in lower case
  Entry entry;            // without its views

  /// The extension in its original case.
  [[nodiscard]] std::string_view written_extension() const {
    return std::string_view(name).substr(name.size() - extension.size());
  }
  /// The part of the extension that names the type: "png" of "seg.png".
  [[nodiscard]] std::string_view type() const {
    return std::string_view(extension).substr(extension.rfind('.') + 1);
  }
};

/// The files of one sample: neighbours whose paths agree up to the first dot of the base name, as
/// webdataset groups them. A repeated extension starts another group.
struct FoundGroup {
  std::string_view key;  // as in the first name; empty: one file that belongs to no sample
  std::span<const FoundFile> files;

  /// Whether there are several files and all are images such as KEY.1.jpg and KEY.2.jpg. Each of
  /// them is then a sample, as nothing says that they belong together.
  [[nodiscard]] bool has_only_numbered_images() const;
};

/// An entry that does not belong to a sample.
struct OtherEntry {
  const Entry& entry;
  std::string_view path;         // normalised like FoundFile::path
  const char* reason = nullptr;  // why it is left out; null for folders and empty names
  bool is_hidden = false;        // left out because of its name
};

/// The label of a group, from the best of the files that may hold one.
struct GroupLabel {
  std::string text{};               // a number or a name; empty: it has none
  const FoundFile* file = nullptr;  // the file with the text
  int rank = 0;                     // 1: `cls` or the named file; 2: `json`; 3: `txt`; 0: none
  std::string unfit{};  // the content of the first file that should hold a label but does not
  const FoundFile* unfit_file = nullptr;
  bool has_long_text = false;  // the `txt` is too long to name a class
};
inline constexpr int kTextRank = 3;

[[nodiscard]] GroupLabel find_label(const FoundGroup& group, std::span<const std::byte> archive,
                                    const LabelKey& key);

/// Throws Unsupported if the bytes of a file are not contiguous.
void refuse_sparse(const FoundFile& file, const std::filesystem::path& archive);

/// Walks over an archive once and groups its files.
class SampleFinder {
 public:
  using OnGroup = std::function<void(const FoundGroup&)>;
  using OnOtherEntry = std::function<void(const OtherEntry&)>;

  /// Borrows `archive` and `path`. The first header is the one at `begin`.
  SampleFinder(std::span<const std::byte> archive, const std::filesystem::path& path,
               std::uint64_t begin = 0)
      : archive_(archive), path_(path), begin_(begin) {}

  /// Calls back for each group, in the order of their first files, and for other entries on the
  /// way. Throws as EntryCursor does.
  void run(const OnGroup& on_group, const OnOtherEntry& on_other = {});

  /// After run() threw: the group that was not complete yet; without files if there is none.
  [[nodiscard]] FoundGroup unfinished() const;

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // offset and size

  void take(const Entry& entry);
  void take_file(const Entry& entry, std::string_view path);
  bool follow(Entry& link);
  [[nodiscard]] bool has_extension(const std::string& extension);
  void end_group();

  std::span<const std::byte> archive_;
  const std::filesystem::path& path_;
  std::uint64_t begin_;
  const OnGroup* on_group_ = nullptr;
  const OnOtherEntry* on_other_ = nullptr;
  std::string key_;               // of the current group, as in `path`
  std::vector<FoundFile> files_;  // of the current group; its memory is reused
  std::size_t count_ = 0;
  FoundFile alone_;  // a file that belongs to no sample
  std::string entry_path_;
  std::unordered_set<std::string> extensions_;  // of a group with many files
  bool has_links_ = false;
  std::unordered_map<std::string, Place> places_;  // of files by path, once there is a link
};

}  // namespace precache::tar
