// SPDX-License-Identifier: Apache-2.0
#include "convert/source/mask_files.hpp"

#include <fmt/format.h>

#include <utility>

#include "convert/source/folder_walk.hpp"
#include "formats/bytes/splitmix.hpp"
#include "formats/bytes/text.hpp"
#include "formats/shard/file_names.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// The path without the ending of an image file.
std::string_view stem_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || path.find('/', dot) != std::string_view::npos) return path;
  return find_image_ending(lower(path.substr(dot + 1))) == nullptr ? path : path.substr(0, dot);
}

Source list_masks(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw InvalidArgument(fmt::format("`mask` '{}' is not a folder", folder.string()));
  }
  Source source;
  const Listing images = walk_folder(folder).images;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (lower(images[i].path).ends_with(".png")) source.listing.add(images[i]);
  }
  source.listing.sort_by_path();
  return source;
}

}  // namespace

MaskFiles::MaskFiles(std::filesystem::path folder)
    : folder_(std::move(folder)), source_(list_masks(folder_)), files_(folder_, source_) {
  for (std::size_t i = 0; i < source_.listing.size(); ++i) {
    const auto [first, is_new] =
        numbers_.emplace(stem_of(source_.listing[i].path), static_cast<std::uint32_t>(i));
    if (is_new) continue;
    throw InvalidArgument(
        fmt::format("'{}' and '{}' in '{}' are masks of one image",
                    source_.listing[first->second].path, source_.listing[i].path, folder_.string()),
        "Remove one of them.");
  }
}

ListedFile MaskFiles::of(std::string_view path) const {
  const std::string_view stem = stem_of(path);
  const auto found = numbers_.find(stem);
  if (found != numbers_.end()) return source_.listing[found->second];
  throw InvalidArgument(
      fmt::format("there is no mask for '{}': no '{}.png' in '{}'", path, stem, folder_.string()),
      "The path of a mask below `mask` is that of its image below `source`, with the ending "
      ".png.");
}

std::uint64_t MaskFiles::fingerprint(const Listing& samples) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    sum = splitmix((sum ^ of(samples[i].path).size) + kGoldenGamma);
  }
  return sum;
}

}  // namespace precache
