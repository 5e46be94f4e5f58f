// SPDX-License-Identifier: Apache-2.0
#include "convert/source/folder_walk.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/task_group.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "convert/source/retry.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/text.hpp"
#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_names.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

// Links may lead to some folders twice. More than this many times means that they fan out.
constexpr std::uint64_t kMostMetAgain = 10'000;

/// A folder on the way from the root, to detect loops of symbolic links.
struct Ancestor {
  dev_t device;
  ino_t inode;
  std::shared_ptr<const Ancestor> parent;
};

bool is_among(const std::shared_ptr<const Ancestor>& folder, const struct stat& status) {
  for (const Ancestor* a = folder.get(); a != nullptr; a = a->parent.get()) {
    if (a->device == status.st_dev && a->inode == status.st_ino) return true;
  }
  return false;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

class Walker {
 public:
  Walker(const std::filesystem::path& root, Share share) : root_(root), share_(share) {}

  FolderWalk run() {
    const struct stat status = stat_of("");
    if (!S_ISDIR(status.st_mode)) {
      throw InvalidArgument("'" + root_.string() + "' is not a folder",
                            "`source` must be a folder with a subfolder of images for each class.");
    }
    if (share_.count == 0) {
      times_[""] = mtime_ns(status);
      tasks_.run_and_wait([&] { visit("", nullptr, status); });
    } else {
      visit_share({"", status, nullptr});
    }
    std::vector<FolderWalk> parts;
    std::ranges::move(parts_, std::back_inserter(parts));
    parts.push_back({.images = {},
                     .top_folders = std::move(top_folders_),
                     .times = std::move(times_),
                     .ignored = {}});
    return joined(std::move(parts));
  }

 private:
  struct Entry {
    std::string name;
    unsigned char type;  // as in dirent
  };

  struct Place {
    std::string path;
    struct stat status;
    std::shared_ptr<const Ancestor> parent;
  };

  static std::vector<Entry> read_entries(const std::filesystem::path& path) {
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
    if (!directory) throw IoError("cannot list", path, errno);
    std::vector<Entry> entries;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr && errno != 0) throw IoError("cannot list", path, errno);
      if (entry == nullptr) return entries;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") entries.push_back({entry->d_name, entry->d_type});
    }
  }

  [[nodiscard]] std::vector<Entry> entries_of(const std::string& folder) const {
    return with_retries([&] { return read_entries(root_ / folder); });
  }

  static std::string path_in(const std::string& folder, const Entry& entry) {
    return folder.empty() ? entry.name : folder + "/" + entry.name;
  }

  void visit(const std::string& folder, std::shared_ptr<const Ancestor> parent,
             const struct stat& status) {
    const auto self =
        std::make_shared<const Ancestor>(Ancestor{status.st_dev, status.st_ino, std::move(parent)});
    for (const Entry& entry : entries_of(folder)) visit_entry(folder, entry, self);
  }

  /// Deals out the folders of the first level that has at least one for each share. The files above
  /// are dealt out by their paths; all shares read their names.
  void visit_share(Place root) {
    std::vector<Place> level{std::move(root)};
    while (!level.empty()) {
      std::vector<Place> next;
      for (const Place& place : level) tasks_.run([&] { visit_above(place, next); });
      tasks_.wait();
      std::ranges::sort(next, {}, &Place::path);
      const bool is_divided = next.size() >= share_.count;
      for (std::size_t i = share_.index; i < next.size(); i += share_.count) {
        if (level.front().path.empty()) top_folders_.push_back(next[i].path);
        if (!is_divided) continue;
        const Place& place = next[i];
        times_[place.path] = mtime_ns(place.status);
        tasks_.run([this, place] { visit(place.path, place.parent, place.status); });
      }
      tasks_.wait();
      if (is_divided) return;
      level = std::move(next);
    }
  }

  void visit_above(const Place& place, std::vector<Place>& folders) {
    const auto self = std::make_shared<const Ancestor>(
        Ancestor{place.status.st_dev, place.status.st_ino, place.parent});
    {
      const std::scoped_lock lock(mutex_);
      times_[place.path] = mtime_ns(place.status);
    }
    for (const Entry& entry : entries_of(place.path)) {
      const std::string path = path_in(place.path, entry);
      if (const auto status = folder_at(path, entry); status && !is_among(self, *status)) {
        note_folder(path, false, *status);
        const std::scoped_lock lock(mutex_);
        folders.push_back({path, *status, self});
      } else if (crc32c::value(as_bytes(path)) % share_.count == share_.index) {
        visit_entry(place.path, entry, self);
      }
    }
  }

  /// The state of an entry if it is a folder to visit, or a link to one.
  [[nodiscard]] std::optional<struct stat> folder_at(const std::string& path,
                                                     const Entry& entry) const {
    const bool may_be = entry.type == DT_DIR || entry.type == DT_LNK || entry.type == DT_UNKNOWN;
    if (!may_be || hidden_reason(entry.name) != nullptr) return std::nullopt;
    try {
      const struct stat status = stat_of(path);
      return S_ISDIR(status.st_mode) ? std::optional(status) : std::nullopt;
    } catch (const IoError& error) {
      if (error.code() == ENOENT || error.code() == ELOOP) return std::nullopt;
      throw;
    }
  }

  struct stat stat_of(const std::string& path) const {
    return with_retries([&] {
      struct stat status {};
      const auto full = path.empty() ? root_ : root_ / path;
      if (::stat(full.c_str(), &status) != 0) throw IoError("cannot read", full, errno);
      return status;
    });
  }

  void visit_entry(const std::string& folder, const Entry& entry,
                   const std::shared_ptr<const Ancestor>& self) {
    IgnoredFiles& ignored = parts_.local().ignored;
    if (const char* const reason = hidden_reason(entry.name)) {
      ++ignored[reason];
      return;
    }
    const bool image = has_image_extension(entry.name);
    if (entry.type == DT_REG && !image) {
      ++ignored[ignored_reason(entry.name)];
      return;
    }
    const std::string path = path_in(folder, entry);
    struct stat status {};
    try {
      status = stat_of(path);
    } catch (IoError& error) {
      if (error.code() != ENOENT && error.code() != ELOOP) throw;
      if (!image) {
        ++ignored["dangling link"];
        return;
      }
      error.add_hint(
          "The file is a symbolic link to something that does not exist: restore or remove it.");
      throw;
    }
    if (S_ISDIR(status.st_mode)) {
      if (is_among(self, status)) {
        ++ignored["link to a folder above it"];
        return;
      }
      note_folder(path, folder.empty(), status);
      tasks_.run([this, path, self, status] { visit(path, self, status); });
    } else if (!S_ISREG(status.st_mode)) {
      ++ignored["not a regular file"];
    } else if (!image) {  // a symbolic link to a file
      ++ignored[ignored_reason(entry.name)];
    } else {
      parts_.local().images.add(
          {path, static_cast<std::uint64_t>(status.st_size), mtime_ns(status), -1});
    }
  }

  /// Links to folders of further links multiply the number of paths to a folder.
  void note_folder(const std::string& path, bool is_top, const struct stat& status) {
    const std::scoped_lock lock(mutex_);
    if (is_top) {
      top_folders_.push_back(path);
      times_[path] = mtime_ns(status);
    }
    const bool is_new = known_folders_.emplace(status.st_dev, status.st_ino).second;
    if (is_new || ++met_again_ <= kMostMetAgain) return;
    throw InvalidArgument(
        fmt::format("symbolic links in '{}' lead more than {} times to folders that were already "
                    "listed; '{}' is one of them",
                    root_.string(), kMostMetAgain, path),
        "Remove links to folders that contain further links.");
  }

  std::filesystem::path root_;
  Share share_;
  tbb::task_group tasks_;
  tbb::enumerable_thread_specific<FolderWalk> parts_;
  std::mutex mutex_;
  std::vector<std::string> top_folders_;
  FolderTimes times_;
  std::set<std::pair<dev_t, ino_t>> known_folders_;
  std::uint64_t met_again_ = 0;
};

}  // namespace

std::string ignored_reason(std::string_view file_name) {
  const auto dot = file_name.rfind('.');
  const std::string extension =
      dot == std::string_view::npos ? std::string() : lower(file_name.substr(dot + 1));
  return extension.empty() ? "no extension" : "." + escape_invalid_utf8(extension);
}

FolderWalk walk_folder(const std::filesystem::path& root, Share share) {
  return Walker(root, share).run();
}

FolderWalk joined(std::vector<FolderWalk> walks) {
  FolderWalk all;
  for (FolderWalk& walk : walks) {
    all.images.append(std::move(walk.images));
    for (const auto& [reason, count] : walk.ignored) all.ignored[reason] += count;
    std::ranges::move(walk.top_folders, std::back_inserter(all.top_folders));
    all.times.merge(walk.times);
  }
  std::ranges::sort(all.top_folders);
  return all;
}

}  // namespace precache
