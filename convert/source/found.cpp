// SPDX-License-Identifier: Apache-2.0
#include "convert/source/found.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "convert/source/slice.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/error.hpp"

namespace precache::found {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "precfnd1";
constexpr std::size_t kHeadBytes = 12;  // the magic and a CRC of the rest, which is CBOR

/// The texts are bytes that need not be UTF-8, which CBOR does not mind.
IgnoredFiles ignored_of(const Json& json) {
  IgnoredFiles ignored;
  for (const auto& [reason, count] : json.items()) {
    ignored.emplace(reason, strict_json::count(count));
  }
  return ignored;
}

}  // namespace

Json to_json(const Listing& listing) {
  std::string bytes;
  for (std::size_t i = 0; i < listing.size(); ++i) append_sample(bytes, listing[i], "");
  return {{"samples", listing.size()},
          {"bytes", Json::binary(std::vector<std::uint8_t>(bytes.begin(), bytes.end()))}};
}

Listing listing_of(const Json& json, std::uint32_t shard) {
  const auto bytes = std::as_bytes(std::span(json.at("bytes").get_binary()));
  const Slice slice({bytes.begin(), bytes.end()}, strict_json::count(json.at("samples")), "", 0);
  Listing listing;
  for (std::uint64_t i = 0; i < slice.size(); ++i) {
    ListedFile file = slice.file(i);
    file.shard = shard;
    listing.add(file);
  }
  return listing;
}

Json to_json(const FolderWalk& walk) {
  return {{"images", to_json(walk.images)},
          {"top_folders", walk.top_folders},
          {"times", walk.times},
          {"left_out", walk.ignored}};
}

FolderWalk walk_of(const Json& json) {
  return {.images = listing_of(json.at("images"), 0),
          .top_folders = json.at("top_folders").get<std::vector<std::string>>(),
          .times = json.at("times").get<FolderTimes>(),
          .ignored = ignored_of(json.at("left_out"))};
}

Json to_json(const TarImages& images) {
  Listing groups;
  for (const TarImages::Group& group : images.labels) {
    groups.add({group.label, static_cast<std::uint64_t>(group.label_rank), 0,
                group.has_long_text ? 1 : 0});
  }
  Json json = {{"images", to_json(images.images)},
               {"groups", images.groups},
               {"labels", to_json(groups)},
               {"folders", images.folders},
               {"has_root_entry", images.has_root_entry},
               {"has_arrays", images.has_arrays},
               {"left_out", images.ignored},
               {"label_files", images.label_files}};
  if (images.unfit_label) {
    json["unfit_label"] = {images.unfit_label->first, images.unfit_label->second};
  }
  return json;
}

TarImages tar_images_of(const Json& json, std::uint32_t shard) {
  TarImages images;
  images.images = listing_of(json.at("images"), shard);
  const Listing groups = listing_of(json.at("labels"), 0);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ListedFile group = groups[i];
    images.labels.push_back(
        {std::string(group.path), static_cast<int>(group.size), group.label != 0});
  }
  for (const Json& group : json.at("groups")) {
    images.groups.push_back(static_cast<std::uint32_t>(strict_json::count(group, UINT32_MAX)));
    if (images.groups.back() >= images.labels.size()) throw std::invalid_argument("no such group");
  }
  if (images.groups.size() != images.images.size()) throw std::invalid_argument("groups differ");
  images.folders = json.at("folders").get<std::set<std::string>>();
  images.has_root_entry = json.at("has_root_entry").get<bool>();
  images.has_arrays = json.at("has_arrays").get<bool>();
  images.ignored = ignored_of(json.at("left_out"));
  images.label_files = ignored_of(json.at("label_files"));
  if (const auto unfit = json.find("unfit_label"); unfit != json.end()) {
    images.unfit_label.emplace(
        static_cast<std::uint32_t>(strict_json::count(unfit->at(0), UINT32_MAX)),
        unfit->at(1).get<std::string>());
  }
  return images;
}

Json to_json(const RecordImages& images) {
  Listing labels;
  for (std::size_t i = 0; i < images.labels.size(); ++i) labels.add({images.labels.text(i)});
  return {{"records", to_json(images.records)},
          {"labels", to_json(labels)},
          {"image_key", images.image_key},
          {"has_image", images.has_image}};
}

RecordImages record_images_of(const Json& json, std::uint32_t shard) {
  RecordImages images;
  images.records = listing_of(json.at("records"), shard);
  const Listing labels = listing_of(json.at("labels"), 0);
  for (std::size_t i = 0; i < labels.size(); ++i) images.labels.add(labels[i].path);
  images.image_key = json.at("image_key").get<std::string>();
  images.has_image = json.at("has_image").get<bool>();
  return images;
}

Json to_json(const FoundShard& shard) {
  return {{"name", shard.stamp.path.filename().string()},
          {"bytes", shard.stamp.bytes},
          {"mtime_ns", shard.stamp.mtime_ns},
          {"format", name(shard.format)},
          {"images", shard.images}};
}

FoundShard shard_of(const Json& json) {
  return {{json.at("name").get<std::string>(), strict_json::count(json.at("bytes")),
           strict_json::integer(json.at("mtime_ns"))},
          parse_format(json.at("format").get<std::string>()),
          json.at("images")};
}

void save(const fs::path& path, const std::string& source, const Json& json) {
  const std::vector<std::uint8_t> body = Json::to_cbor(Json{{"source", source}, {"found", json}});
  const auto bytes = std::as_bytes(std::span(body));
  std::string head(kMagic);
  put_little_endian(std::back_inserter(head), crc32c::value(bytes), 4);
  TemporaryFile temporary(path);
  temporary.file().write_at(0, as_bytes(head));
  temporary.file().write_at(kHeadBytes, bytes);
  temporary.commit();
}

Json Shares::read(std::uint64_t index) const {
  const fs::path& path = files_[index];
  const auto bytes = read_file(path);
  const auto body = std::span(bytes).subspan(std::min(kHeadBytes, bytes.size()));
  if (bytes.size() < kHeadBytes || !as_text(bytes).starts_with(kMagic) ||
      crc32c::value(body) != little_endian(std::span(bytes).subspan(8, 4))) {
    throw CorruptData(path, 0, "this share of the source is damaged");
  }
  try {
    const auto text = as_text(body);
    Json json = Json::from_cbor(text.begin(), text.end());
    if (json.at("source").get<std::string>() == source_) return std::move(json.at("found"));
  } catch (const Json::exception& error) {
    throw CorruptData(path, kHeadBytes, error.what());
  }
  throw InvalidArgument(
      fmt::format("'{}' was listed from another source or with other options", path.string()),
      "List all shares again with the same options, or set `overwrite` to ignore them.");
}

void Shares::refuse(std::uint64_t index, const fs::path& what) const {
  throw InvalidArgument(
      fmt::format("share {} of {} does not fit the source: '{}' has changed since the share was "
                  "listed",
                  index, count(), what.string()),
      fmt::format("List share {}/{} again, and the others that have changed, or set `overwrite` to "
                  "ignore them all.",
                  index, count()));
}

}  // namespace precache::found
