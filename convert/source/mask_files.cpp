// SPDX-License-Identifier: Apache-2.0
#include "convert/source/mask_files.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "convert/source/folder_walk.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/bytes/splitmix.hpp"
#include "formats/bytes/text.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_names.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::string_view kEnding = ".png";
static_assert(kMaskNoteBytes == 8 + 8 + kEnding.size());

/// The path without the ending of an image file.
std::string_view stem_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || path.find('/', dot) != std::string_view::npos) return path;
  return find_image_ending(lower(path.substr(dot + 1))) == nullptr ? path : path.substr(0, dot);
}

Listing list_masks(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw InvalidArgument(fmt::format("`mask` '{}' is not a folder", folder.string()));
  }
  Listing masks;
  const Listing images = walk_folder(folder).images;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (lower(images[i].path).ends_with(kEnding)) masks.add(images[i]);
  }
  masks.sort_by_path();
  return masks;
}

}  // namespace

MaskFiles::MaskFiles(std::filesystem::path folder)
    : folder_(std::move(folder)), files_(folder_, no_shards_) {}

void MaskFiles::list() {
  numbers_.clear();
  masks_ = list_masks(folder_);
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    const auto [first, is_new] =
        numbers_.emplace(stem_of(masks_[i].path), static_cast<std::uint32_t>(i));
    if (is_new) continue;
    throw InvalidArgument(fmt::format("'{}' and '{}' in '{}' are masks of one image",
                                      masks_[first->second].path, masks_[i].path, folder_.string()),
                          "Remove one of them.");
  }
}

Mask MaskFiles::of(std::string_view path) const {
  const std::string_view stem = stem_of(path);
  if (const auto found = numbers_.find(stem); found != numbers_.end()) {
    const ListedFile mask = masks_[found->second];
    return {std::string(mask.path), mask.size, mask.mtime_ns};
  }
  throw InvalidArgument(
      fmt::format("there is no mask for '{}': no '{}.png' in '{}'", path, stem, folder_.string()),
      "The path of a mask below `mask` is that of its image below `source`, with the ending "
      ".png.");
}

std::string MaskFiles::note(std::string_view path) const {
  const Mask mask = of(path);
  std::string note;
  auto out = put_little_endian(std::back_inserter(note), mask.size, 8);
  put_little_endian(out, static_cast<std::uint64_t>(mask.mtime_ns), 8);
  return note + mask.path.substr(mask.path.size() - kEnding.size());  // may be .PNG
}

Mask MaskFiles::noted(std::string_view path, std::string_view note) {
  const auto bytes = as_bytes(note);
  return {std::string(stem_of(path)) + std::string(note.substr(16)),
          little_endian(bytes.subspan(0, 8)),
          static_cast<std::int64_t>(little_endian(bytes.subspan(8, 8)))};
}

std::uint64_t MaskFiles::fingerprint(const Listing& samples) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    sum = splitmix((sum ^ of(samples[i].path).size) + kGoldenGamma);
  }
  return sum;
}

}  // namespace precache
