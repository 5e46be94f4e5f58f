// SPDX-License-Identifier: Apache-2.0
#include "formats/os/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

}  // namespace

Folder::Folder(const std::filesystem::path& path, Links links)
    : file_(path, links == Links::kRefuse ? kFlags : kFlags & ~O_NOFOLLOW) {}

Folder::Folder(const Folder& parent, const std::string& name)
    : file_(::openat(parent.file_.descriptor(), name.c_str(), kFlags | O_CLOEXEC),
            parent.file_.path() / name) {
  if (!file_.is_open()) throw IoError("cannot open", file_.path(), errno);
}

std::vector<Folder::Entry> Folder::entries() const {
  // A second descriptor: reading moves its position, and closedir() closes it.
  const int descriptor = ::openat(file_.descriptor(), ".", kFlags | O_CLOEXEC);
  DIR* opened = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
  if (opened == nullptr) {
    const int code = errno;
    if (descriptor >= 0) ::close(descriptor);
    throw IoError("cannot list", file_.path(), code);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opened, ::closedir);
  std::vector<Entry> found;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entry->d_type != DT_UNKNOWN) {  // no call for each of a million entries
      found.push_back({std::string(name), entry->d_type == DT_REG, entry->d_type == DT_DIR});
      continue;
    }
    struct stat status {};
    if (::fstatat(file_.descriptor(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    found.push_back({std::string(name), S_ISREG(status.st_mode), S_ISDIR(status.st_mode)});
  }
  if (errno != 0) throw IoError("cannot list", file_.path(), errno);
  return found;
}

bool Folder::remove_file(const std::string& name) const noexcept {
  return ::unlinkat(file_.descriptor(), name.c_str(), 0) == 0 || errno == ENOENT;
}

bool Folder::remove_folder(const std::string& name) const noexcept {
  return ::unlinkat(file_.descriptor(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
}

bool is_link(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_symlink(std::filesystem::symlink_status(path, ignored));
}

}  // namespace precache
