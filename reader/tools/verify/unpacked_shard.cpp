// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/verify/unpacked_shard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "formats/bytes/inflate.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;

File make_temporary() {
  std::string path = (std::filesystem::temp_directory_path() / "precache-XXXXXX").string();
  File file(::mkostemp(path.data(), O_CLOEXEC), path);
  if (!file.is_open()) throw IoError("cannot create", path, errno);
  ::unlink(path.c_str());
  return file;
}

}  // namespace

bool is_packed(std::span<const std::byte> file) {
  const FileKind kind = file_kind(file);
  return kind.group == FileKind::Group::kCompressed &&
         (kind.name == "gzip" || kind.name == "zlib") && !begins_as_shard(file);
}

UnpackedShard::UnpackedShard(const MappedShard& packed,
                             const std::function<bool(std::uint64_t)>& progress) {
  File file = make_temporary();
  std::uint64_t size = 0;
  Inflater inflater(packed.path());
  UnpackedHead head(packed.path());
  try {
    bool goes_on = true;
    for (auto rest = packed.bytes(); !rest.empty() && goes_on;) {
      const auto piece = rest.first(std::min<std::uint64_t>(rest.size(), kPiece));
      inflater.feed(piece, [&](std::span<const std::byte> bytes) {
        head.see(bytes);
        file.write_at(size, bytes);
        size += bytes.size();
      });
      rest = rest.subspan(piece.size());
      goes_on = progress(piece.size());
    }
    if (goes_on) inflater.finish();
  } catch (IoError& error) {
    error.add_hint(fmt::format(
        "'{}' is unpacked there to be read, {} of it so far. TMPDIR names another folder.",
        packed.path().string(), size_text(size)));
    throw;
  }
  mapping_ = Mapping(file, 0, size, PROT_READ);
}

}  // namespace precache
