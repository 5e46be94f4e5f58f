// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "formats/hdf5/helper/helper_client.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/file_names.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/ustar.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kFirstUserBlock = 512;
// Archivers pad an archive to some number of blocks. A file of more zeros was never written.
constexpr std::uint64_t kLargestEmptyTar = std::uint64_t{1} << 20;

bool has_signature(std::span<const std::byte> file, std::uint64_t offset) {
  return offset < file.size() && as_text(file.subspan(offset)).starts_with(kHdf5Signature);
}

/// HDF5 allows other content before its own, which then starts at 512 times a power of two.
bool has_signature_after_user_block(std::span<const std::byte> file) {
  for (std::uint64_t offset = kFirstUserBlock; offset < file.size(); offset *= 2) {
    if (has_signature(file, offset)) return true;
  }
  return false;
}

bool is_empty_tar(std::span<const std::byte> file) {
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  return file.size() >= 2 * ustar::kBlock && file.size() % ustar::kBlock == 0 &&
         file.size() <= kLargestEmptyTar && std::ranges::all_of(file, is_zero);
}

bool has_tar_magic(std::span<const std::byte> file) {
  return file.size() >= ustar::kBlock &&
         as_text(file.subspan(ustar::kMagic, 5)) == std::string_view("ustar");
}

/// The format of a file that starts with a signature, a tar header or the length of a TFRecord.
std::optional<Format> format_of_head(std::span<const std::byte> head) {
  if (has_signature(head, 0)) return Format::kHdf5;
  if (tar::is_header(head.first(std::min(head.size(), ustar::kBlock)))) return Format::kTar;
  return tfrecord::has_length(head) ? std::optional(Format::kTfrecord) : std::nullopt;
}

[[noreturn]] void refuse(const FileKind& kind, const std::filesystem::path& path) {
  const std::string file = path.string();
  switch (kind.group) {
    case FileKind::Group::kDeflated:
    case FileKind::Group::kCompressed:
      throw Unsupported(
          fmt::format("'{}' is compressed by {}, so it cannot be mapped", file, kind.name),
          "Decompress it first.");
    case FileKind::Group::kLfsPointer:
      throw Unsupported(fmt::format("'{}' is a Git LFS pointer, not the data", file),
                        "Fetch the data with 'git lfs pull'.");
    case FileKind::Group::kImage:
      throw Unsupported(fmt::format("'{}' is a {} image, not a shard", file, kind.name));
    default:
      throw Unsupported(fmt::format("'{}' is a {}, not a shard", file, kind.name));
  }
}

}  // namespace

bool begins_as_shard(std::span<const std::byte> head) { return format_of_head(head).has_value(); }

Format detect_format(std::span<const std::byte> file, const std::filesystem::path& path) {
  const auto named = format_of_name(path);
  if (file.empty()) {
    if (named == Format::kTfrecord) return Format::kTfrecord;
    throw CorruptData(path, 0, "the file is empty");
  }
  if (const auto format = format_of_head(file)) return *format;
  if (const FileKind kind = file_kind(file); kind.group != FileKind::Group::kUnknown) {
    refuse(kind, path);
  }
  if (has_tar_magic(file) || is_empty_tar(file)) return Format::kTar;
  // Last: the first file of an archive may be an HDF5 file.
  if (has_signature_after_user_block(file)) return Format::kHdf5;
  if (named) {
    throw CorruptData(path, 0, fmt::format("it does not start like a {} file", name(*named)));
  }
  throw Unsupported(fmt::format("'{}' is not a tar, TFRecord or HDF5 file", path.string()));
}

void UnpackedHead::see(std::span<const std::byte> bytes) {
  if (is_shard_) return;
  const std::size_t wanted = kLargestEmptyTar + 1 - head_.size();  // a tar has no more zeros
  const auto taken = bytes.first(std::min(bytes.size(), wanted));
  head_.insert(head_.end(), taken.begin(), taken.end());
  if (head_.size() > kLargestEmptyTar) static_cast<void>(detect_format(head_, path_));
  is_shard_ =
      head_.size() > kLargestEmptyTar || (head_.size() >= ustar::kBlock && begins_as_shard(head_));
  if (is_shard_) head_ = {};
}

ShardIndex scan_shard(std::span<const std::byte> file, const std::filesystem::path& path,
                      const std::optional<TensorSpec>& given, const SampleKeys& keys,
                      const std::filesystem::path& helper) {
  switch (detect_format(file, path)) {
    case Format::kTar:
      return tar::scan(file, path, given, keys);
    case Format::kTfrecord:
      return tfrecord::scan(file, path, given, keys);
    case Format::kHdf5:
      break;
  }
  return hdf5::scan_in_helper(helper, path, file.size(), keys);
}

}  // namespace precache
