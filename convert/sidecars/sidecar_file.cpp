// SPDX-License-Identifier: Apache-2.0
#include "convert/sidecars/sidecar_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(path, error));
  if (error && error.value() != ENOENT) throw IoError("cannot read", path, error.value());
  return there;
}

}  // namespace

std::optional<std::string> head_of(const fs::path& path) {
  constexpr std::uint64_t kHeadBytes = 64 << 10;
  if (!is_there(path) || !fs::is_regular_file(path)) return std::nullopt;
  const File file(path, O_RDONLY);
  std::string head(std::min(file.size(), kHeadBytes), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(head)));
  return head;
}

void refuse_to_replace(const fs::path& path) {
  throw InvalidArgument(
      fmt::format("refusing to replace '{}': it is not an index of this kind", path.string()),
      "Move the file away, or leave out this kind of index.");
}

void write_sidecar(const fs::path& path, std::string_view text, const Recognize& recognize) {
  if (is_there(path)) {
    const auto head = head_of(path);
    if (head && fs::file_size(path) == text.size() && as_text(read_file(path)) == text) return;
    if (!head || !recognize(*head)) refuse_to_replace(path);
  }
  write_file_atomically(path, text);
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw IoError("cannot remove", path, error.value());
}

void remove_sidecar(const fs::path& path, const Recognize& recognize) {
  const auto head = head_of(path);
  if (head && recognize(*head)) remove_file(path);
}

}  // namespace precache
