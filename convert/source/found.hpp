// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "convert/source/folder_walk.hpp"
#include "convert/source/tar_images.hpp"
#include "convert/source/tfrecord_images.hpp"
#include "precache/formats/format.hpp"

/// The content of a share of a source, as one of several runs writes it down for the run that puts
/// the shares together.
namespace precache::found {

using Json = nlohmann::ordered_json;

[[nodiscard]] Json to_json(const Listing& listing);
[[nodiscard]] Json to_json(const FolderWalk& walk);
[[nodiscard]] Json to_json(const TarImages& images);
[[nodiscard]] Json to_json(const RecordImages& images);

// Throw nlohmann::json::exception, std::invalid_argument or CorruptData if to_json() did not write
// it. `shard` is the number of the file among all files of the source.
[[nodiscard]] Listing listing_of(const Json& json, std::uint32_t shard);
[[nodiscard]] FolderWalk walk_of(const Json& json);
[[nodiscard]] TarImages tar_images_of(const Json& json, std::uint32_t shard);
[[nodiscard]] RecordImages record_images_of(const Json& json, std::uint32_t shard);

/// A shard of the source and what is in it.
struct FoundShard {
  FileStamp stamp;
  Format format = Format::kTar;
  Json images;
};
[[nodiscard]] Json to_json(const FoundShard& shard);
[[nodiscard]] FoundShard shard_of(const Json& json);

/// Writes one share through a temporary. `source` names what it belongs to. Throws IoError.
void save(const std::filesystem::path& path, const std::string& source, const Json& json);

/// All shares of a source, in their order. Lists are dealt out to the shares in turn.
class Shares {
 public:
  Shares(std::vector<std::filesystem::path> files, std::string source)
      : files_(std::move(files)), source_(std::move(source)) {}

  [[nodiscard]] std::uint64_t count() const { return files_.size(); }
  /// Reads one share, because all of them may be too large. Throws IoError, CorruptData, and
  /// InvalidArgument if the share belongs to another source.
  [[nodiscard]] Json read(std::uint64_t index) const;
  /// Says that `what` is not as it was when this share was listed. Throws InvalidArgument.
  [[noreturn]] void refuse(std::uint64_t index, const std::filesystem::path& what) const;

 private:
  std::vector<std::filesystem::path> files_;
  std::string source_;
};

}  // namespace precache::found
