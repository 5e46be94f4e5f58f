// SPDX-License-Identifier: Apache-2.0
#include "convert/job/disk_space.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/formats/error.hpp"

namespace precache {

std::uint64_t free_bytes(std::filesystem::path path) {
  path = std::filesystem::absolute(path);
  while (!std::filesystem::exists(path) && path != path.parent_path()) path = path.parent_path();
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) {
    throw IoError("cannot look at the file system of", path, errno);
  }
  return checked_mul(status.f_bavail, status.f_frsize);
}

std::uint64_t allocated_bytes(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512
                                            : 0;
}

void check_space(const std::filesystem::path& out, std::uint64_t needed, std::uint64_t reusable,
                 const std::string& hint) {
  const std::uint64_t available = checked_add(free_bytes(out), reusable);
  if (needed <= available) return;
  throw IoError("cannot write to", out, ENOSPC,
                fmt::format("The shards need {}, {} are free. {}", size_text(needed),
                            size_text(available), hint));
}

}  // namespace precache
