// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/helper/helper_message.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "precache/formats/error.hpp"

namespace precache::hdf5 {
namespace {

using Json = nlohmann::json;
using Blob = Json::binary_t::container_type;  // std::vector<std::uint8_t>

Json to_json(const Column& column) { return {column.base, column.stride, column.type}; }

Column column_from(const Json& json) {
  return {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>(),
          json.at(2).get<std::string>()};
}

Json to_json(const TensorSpec& spec) {
  return {name(spec.dtype), name(spec.layout), spec.height, spec.width, spec.channels};
}

TensorSpec spec_from(const Json& json) {
  return {parse_dtype(json.at(0).get<std::string>()), parse_layout(json.at(1).get<std::string>()),
          json.at(2).get<std::uint32_t>(), json.at(3).get<std::uint32_t>(),
          json.at(4).get<std::uint32_t>()};
}

Json to_blob(const void* data, std::size_t size) {
  const auto* const begin = static_cast<const std::uint8_t*>(data);
  return Json::binary(Blob(begin, begin + size));
}

/// The places that fill the blob.
std::vector<SampleLocation> places_from(const Blob& blob) {
  if (blob.size() % sizeof(SampleLocation) != 0) throw std::length_error("a place is cut");
  std::vector<SampleLocation> places(blob.size() / sizeof(SampleLocation));
  if (!blob.empty()) std::memcpy(places.data(), blob.data(), blob.size());
  return places;
}

bool lies_within(std::uint64_t begin, std::uint64_t size, std::uint64_t whole) {
  return begin <= whole && size <= whole - begin;
}

/// Columns are checked by whoever reads them; places are not.
bool has_sound_places(const ShardIndex& index) {
  return (index.places.empty() || index.places.size() == index.samples) &&
         std::ranges::all_of(index.places, [&](const SampleLocation& place) {
           return lies_within(place.payload, place.payload_bytes, index.bytes) &&
                  lies_within(place.key_begin, place.key_bytes, index.keys.size()) &&
                  place.record <= index.bytes &&
                  (index.label_names.empty() ||
                   place.label < static_cast<std::int64_t>(index.label_names.size()));
         });
}

ShardIndex index_from(const Json& json) {
  ShardIndex index;
  index.format = Format::kHdf5;
  index.bytes = json.at("bytes").get<std::uint64_t>();
  index.samples = json.at("samples").get<std::uint64_t>();
  if (json.contains("spec")) index.spec = spec_from(json["spec"]);
  index.obstacle = json.at("obstacle").get<std::string>();
  index.columns = {column_from(json.at("image")), column_from(json.at("label")),
                   column_from(json.at("key")), column_from(json.at("crc32c"))};
  index.places = places_from(json.at("places").get_binary());
  const Blob& keys = json.at("keys").get_binary();
  index.keys.assign(keys.begin(), keys.end());
  index.classes = json.at("classes").get<std::vector<std::string>>();
  index.label_names = json.at("label_names").get<std::vector<std::string>>();
  index.mismatched_labels = json.at("mismatched_labels").get<std::string>();
  index.maybe_labels = json.at("maybe_labels").get<std::string>();
  return index;
}

Json to_json(const Hdf5Contents::Object& object) {
  Json json{{"name", object.name},   {"kind", object.kind},       {"target", object.target},
            {"type", object.type},   {"shape", object.shape},     {"storage", object.storage},
            {"chunk", object.chunk}, {"filters", object.filters}, {"stored", object.stored_bytes}};
  if (object.offset) json["offset"] = *object.offset;
  return json;
}

Hdf5Contents::Object object_from(const Json& json) {
  Hdf5Contents::Object object{.name = json.at("name").get<std::string>(),
                              .kind = json.at("kind").get<std::string>()};
  object.target = json.at("target").get<std::string>();
  object.type = json.at("type").get<std::string>();
  object.shape = json.at("shape").get<std::vector<std::uint64_t>>();
  object.storage = json.at("storage").get<std::string>();
  object.chunk = json.at("chunk").get<std::vector<std::uint64_t>>();
  object.filters = json.at("filters").get<std::vector<std::string>>();
  if (json.contains("offset")) object.offset = json["offset"].get<std::uint64_t>();
  object.stored_bytes = json.at("stored").get<std::uint64_t>();
  return object;
}

/// Throws the error that a message tells of.
void rethrow(const Json& json, const std::filesystem::path& path) {
  if (json.contains("corrupt")) {
    throw CorruptData(path, json.at("offset").get<std::uint64_t>(),
                      json["corrupt"].get<std::string>());
  }
  if (json.contains("unsupported")) {
    throw Unsupported(json["unsupported"].get<std::string>(), json.at("hint").get<std::string>());
  }
  if (json.contains("invalid")) {
    throw InvalidArgument(json["invalid"].get<std::string>(), json.at("hint").get<std::string>());
  }
  if (json.contains("failed")) {
    throw IoError("cannot scan: " + json["failed"].get<std::string>(), path, 0);
  }
}

/// What `read` makes of a message that is no error.
template <typename Read>
auto decode_by(const Read& read, std::span<const std::uint8_t> message,
               const std::filesystem::path& path) {
  try {
    const Json json = Json::from_cbor(message);
    rethrow(json, path);
    return read(json);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    throw CorruptData(path, 0, "the HDF5 library went astray on it");
  }
}

}  // namespace

std::vector<std::uint8_t> encode(const Hdf5Contents& contents) {
  Json objects = Json::array();
  for (const Hdf5Contents::Object& object : contents.objects) objects.push_back(to_json(object));
  return Json::to_cbor({{"objects", std::move(objects)}, {"has_more", contents.has_more}});
}

std::vector<std::uint8_t> encode(const ShardIndex& index) {
  static_assert(std::is_trivially_copyable_v<SampleLocation>);
  Json json{{"bytes", index.bytes},
            {"samples", index.samples},
            {"obstacle", index.obstacle},
            {"image", to_json(index.columns.image)},
            {"label", to_json(index.columns.label)},
            {"key", to_json(index.columns.key)},
            {"crc32c", to_json(index.columns.crc32c)},
            {"places", to_blob(index.places.data(), index.places.size() * sizeof(SampleLocation))},
            {"keys", to_blob(index.keys.data(), index.keys.size())},
            {"classes", index.classes},
            {"label_names", index.label_names},
            {"mismatched_labels", index.mismatched_labels},
            {"maybe_labels", index.maybe_labels}};
  if (index.spec) json["spec"] = to_json(*index.spec);
  return Json::to_cbor(json);
}

std::vector<std::uint8_t> encode(std::uint64_t count) { return Json::to_cbor({{"count", count}}); }

std::vector<std::uint8_t> encode(const std::exception_ptr& error) {
  Json json;
  try {
    std::rethrow_exception(error);
  } catch (const CorruptData& corrupt) {
    json = {{"corrupt", corrupt.reason()}, {"offset", corrupt.offset()}};
  } catch (const Unsupported& unsupported) {
    json = {{"unsupported", unsupported.what()}, {"hint", unsupported.hint()}};
  } catch (const InvalidArgument& invalid) {
    json = {{"invalid", invalid.what()}, {"hint", invalid.hint()}};
  } catch (const std::bad_alloc&) {
    json = {{"corrupt", "it asks for more memory than a scan may take"}, {"offset", 0}};
  } catch (const std::exception& other) {
    json = {{"failed", other.what()}};
  }
  return Json::to_cbor(json);
}

ShardIndex decode(std::span<const std::uint8_t> message, const std::filesystem::path& path,
                  std::uint64_t bytes) {
  ShardIndex index = decode_by(index_from, message, path);
  if (index.bytes != bytes) throw CorruptData(path, 0, "the file changed while it was scanned");
  if (!has_sound_places(index)) throw CorruptData(path, 0, "the HDF5 library went astray on it");
  return index;
}

Hdf5Contents decode_contents(std::span<const std::uint8_t> message,
                             const std::filesystem::path& path) {
  const auto read = [](const Json& json) {
    Hdf5Contents contents;
    for (const Json& object : json.at("objects")) contents.objects.push_back(object_from(object));
    contents.has_more = json.at("has_more").get<bool>();
    return contents;
  };
  return decode_by(read, message, path);
}

std::uint64_t decode_count(std::span<const std::uint8_t> message,
                           const std::filesystem::path& path) {
  return decode_by([](const Json& json) { return json.at("count").get<std::uint64_t>(); }, message,
                   path);
}

}  // namespace precache::hdf5
