// SPDX-License-Identifier: Apache-2.0
#include "convert/source/open_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "convert/source/folder_walk.hpp"
#include "convert/source/shard_source.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

/// "3 .txt files" or "1 dangling link".
std::string ignored_text(const std::string& reason, std::uint64_t count) {
  if (reason.starts_with('.')) return human::count(count, reason + " file");
  return reason.ends_with("link") ? human::count(count, reason)
                                  : fmt::format("{} {}", count, reason);
}

/// The shards of a folder that has no images; none if it has some.
std::vector<fs::path> shards_instead_of_images(const fs::path& folder) {
  if (!holds_shards(folder) || walk_folder(folder).images.size() != 0) return {};
  std::error_code ignored;
  if (fs::exists(folder / kManifestName, ignored)) {
    throw InvalidArgument(
        fmt::format("'{}' is a dataset of tensors: it has a {}", folder.string(), kManifestName),
        kUseConvertHint);
  }
  return shards_in_folder(folder);
}

/// The class names next to packed shards; the shards themselves contain numbers.
std::vector<std::string> class_names_next_to(const std::vector<SourceShard>& shards) {
  const fs::path folder = shards.front().given.path.parent_path();
  if (shards.front().is_stream()) return {};
  EncodedFolder known = EncodedFolder::find(folder.empty() ? "." : folder);
  const bool all = std::ranges::all_of(shards, [&](const SourceShard& shard) {
    return shard.given.path.parent_path() == folder &&
           known.shard(shard.given.path.filename().string()) != nullptr;
  });
  return all ? std::move(known.classes) : std::vector<std::string>();
}

/// Refuses options that would have no effect.
void refuse_keys(const fs::path& folder, const Labelling& labelling) {
  if (labelling.has_messages()) {
    throw InvalidArgument(
        fmt::format("`proto` and `message` apply to TFRecord files, but '{}' is a folder of images",
                    folder.string()));
  }
  if (labelling.image_key.empty() && labelling.label_key.empty()) return;
  throw InvalidArgument(
      fmt::format("`{}` applies to shards, but '{}' is a folder of images",
                  labelling.image_key.empty() ? "label_key" : "image_key", folder.string()),
      "Set `labels` to say how images in folders get their labels.");
}

Source open_listed(const fs::path& source, const Labelling& labelling, Unpacker& unpacker,
                   const fs::path& helper, const found::Shares* shares) {
  SourcePath what = resolve_source(source);
  Source result;
  const bool is_folder = what.kind == SourcePath::Kind::kFolder;
  if (is_folder) what.files = shards_instead_of_images(source);
  if (!what.files.empty()) {
    result = list_shards(source, what, labelling, unpacker, helper, shares);
    if (labelling.kind == Labelling::Kind::kSource) {
      name_classes(result, class_names_next_to(result.shards));
    }
  } else {
    refuse_keys(source, labelling);
    result = shares != nullptr ? open_folder_shares(source, labelling, *shares)
                               : open_folder(source, labelling);
  }
  if (result.listing.size() == 0) {
    std::string others;
    for (const auto& [reason, count] : result.ignored) {
      others +=
          fmt::format("{} {}", others.empty() ? "; it contains" : ",", ignored_text(reason, count));
    }
    throw InvalidArgument(fmt::format("there are no images in '{}'", source.string()),
                          fmt::format("precache looks for JPEG and PNG files{}{}.",
                                      is_folder ? " in all folders below it" : "", others));
  }
  return result;
}

}  // namespace

Source open_source(const fs::path& source, const Labelling& labelling, Unpacker& unpacker,
                   const fs::path& helper) {
  return open_listed(source, labelling, unpacker, helper, nullptr);
}

Source open_shares(const fs::path& source, const Labelling& labelling, Unpacker& unpacker,
                   const fs::path& helper, const found::Shares& shares) {
  try {
    return open_listed(source, labelling, unpacker, helper, &shares);
  } catch (const found::Json::exception&) {
    throw InvalidArgument("the shares do not fit this source: it has changed",
                          "List all shares again, or set `overwrite` to ignore them.");
  }
}

found::Json list_share(const fs::path& source, const Labelling& labelling, const fs::path& helper,
                       Share share) {
  SourcePath what = resolve_source(source);
  if (what.kind == SourcePath::Kind::kFolder) what.files = shards_instead_of_images(source);
  if (what.files.empty()) {
    refuse_keys(source, labelling);
    return list_folder_share(source, labelling, share);
  }
  std::vector<fs::path> files;
  for (std::size_t i = share.index; i < what.files.size(); i += share.count) {
    files.push_back(what.files[i]);
  }
  what.files = std::move(files);
  return list_shard_share(source, what, labelling, helper);
}

}  // namespace precache
