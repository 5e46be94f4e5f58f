// SPDX-License-Identifier: Apache-2.0
#include "formats/os/file_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

FileState state_from(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

bool is_gone(int error) { return error == ENOENT || error == ENOTDIR; }

}  // namespace

FileState state_of(const File& file) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw IoError("cannot stat", file.path(), errno);
  return state_from(status);
}

std::optional<FileState> state_at(const std::filesystem::path& path, Ask ask) {
  if (ask == Ask::kByStat) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) return state_from(status);
    if (!is_gone(errno)) throw IoError("cannot stat", path, errno);
    return std::nullopt;
  }
  try {
    return state_of(File(path, O_RDONLY | O_NONBLOCK));
  } catch (const IoError& error) {
    if (is_gone(error.code())) return std::nullopt;
    if (error.code() == EMFILE || error.code() == ENFILE) return state_at(path, Ask::kByStat);
    throw;
  }
}

}  // namespace precache
