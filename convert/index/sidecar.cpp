// SPDX-License-Identifier: Apache-2.0
#include "convert/index/sidecar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/base/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(path, error));
  if (error && error.value() != ENOENT) throw IoError("cannot look at", path, error.value());
  return there;
}

}  // namespace

void refuse_to_replace(const fs::path& path) {
  throw InvalidArgument(
      fmt::format("'{}' is there and is no index of this kind", path.string()),
      "An index would replace it. Move it away, or leave out this kind of index.");
}

void write_sidecar(const fs::path& path, std::string_view text, const Recognize& recognize) {
  if (is_there(path)) {
    if (!fs::is_regular_file(path)) refuse_to_replace(path);
    const auto bytes = read_file(path);
    if (as_text(bytes) == text) return;
    if (!recognize(as_text(bytes))) refuse_to_replace(path);
  }
  write_file_atomically(path, text);
}

void remove_sidecar(const fs::path& path, const Recognize& recognize) {
  if (!is_there(path) || !fs::is_regular_file(path)) return;
  if (!recognize(as_text(read_file(path)))) return;
  std::error_code error;
  fs::remove(path, error);
  if (error) throw IoError("cannot remove", path, error.value());
}

fs::path without_format(const fs::path& shard) {
  // Other endings may be what tells shards apart: data.tfrecord-00000-of-00002.
  static constexpr std::array<std::string_view, 5> kEndings{".tar", ".tfrecord", ".tfrecords",
                                                            ".tfrec", ".record"};
  const std::string ending = shard.extension().string();
  const bool known = std::ranges::find(kEndings, ending) != kEndings.end();
  return known ? shard.parent_path() / shard.stem() : shard;
}

}  // namespace precache
