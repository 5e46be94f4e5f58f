// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
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
struct Shard {
  FileStamp stamp;
  Format format = Format::kTar;
  Json images;
};
[[nodiscard]] Json to_json(const Shard& shard);
[[nodiscard]] Shard shard_of(const Json& json);

/// Writes one share through a temporary. `source` names what it belongs to. Throws IoError.
void save(const std::filesystem::path& path, const std::string& source, const Json& json);

/// All shares of a source, in their order.
class Shares {
 public:
  /// Throws IoError, CorruptData, and InvalidArgument if a share belongs to another source.
  Shares(const std::vector<std::filesystem::path>& files, const std::string& source);

  [[nodiscard]] std::uint64_t count() const { return shares_.size(); }
  [[nodiscard]] const Json& share(std::uint64_t index) const { return shares_[index]; }
  /// Item `number` of a list that is dealt out to the shares in turn.
  [[nodiscard]] const Json& item(std::uint64_t number) const;

 private:
  std::vector<Json> shares_;
};

}  // namespace precache::found
