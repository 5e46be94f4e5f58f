// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/scan_message.hpp"

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
  return {name(spec.dtype), name(spec.order), spec.height, spec.width, spec.channels};
}

TensorSpec spec_from(const Json& json) {
  return {parse_dtype(json.at(0).get<std::string>()),
          parse_axis_order(json.at(1).get<std::string>()), json.at(2).get<std::uint32_t>(),
          json.at(3).get<std::uint32_t>(), json.at(4).get<std::uint32_t>()};
}

Json to_blob(const void* data, std::size_t size) {
  const auto* const begin = static_cast<const std::uint8_t*>(data);
  return Json::binary(Blob(begin, begin + size));
}

/// The places that fill the blob.
std::vector<SamplePlace> places_from(const Blob& blob) {
  if (blob.size() % sizeof(SamplePlace) != 0) throw std::length_error("a place is cut");
  std::vector<SamplePlace> places(blob.size() / sizeof(SamplePlace));
  if (!blob.empty()) std::memcpy(places.data(), blob.data(), blob.size());
  return places;
}

bool lies_within(std::uint64_t begin, std::uint64_t size, std::uint64_t whole) {
  return begin <= whole && size <= whole - begin;
}

/// Columns are checked by whoever reads them; places are not.
bool has_sound_places(const ShardIndex& index) {
  return (index.places.empty() || index.places.size() == index.samples) &&
         std::ranges::all_of(index.places, [&](const SamplePlace& place) {
           return lies_within(place.payload, place.payload_bytes, index.bytes) &&
                  lies_within(place.key_begin, place.key_bytes, index.keys.size()) &&
                  place.record <= index.bytes;
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
                   column_from(json.at("key"))};
  index.places = places_from(json.at("places").get_binary());
  const Blob& keys = json.at("keys").get_binary();
  index.keys.assign(keys.begin(), keys.end());
  index.classes = json.at("classes").get<std::vector<std::string>>();
  return index;
}

}  // namespace

std::vector<std::uint8_t> encode(const ShardIndex& index) {
  static_assert(std::is_trivially_copyable_v<SamplePlace>);
  Json json{{"bytes", index.bytes},
            {"samples", index.samples},
            {"obstacle", index.obstacle},
            {"image", to_json(index.columns.image)},
            {"label", to_json(index.columns.label)},
            {"key", to_json(index.columns.key)},
            {"places", to_blob(index.places.data(), index.places.size() * sizeof(SamplePlace))},
            {"keys", to_blob(index.keys.data(), index.keys.size())},
            {"classes", index.classes}};
  if (index.spec) json["spec"] = to_json(*index.spec);
  return Json::to_cbor(json);
}

std::vector<std::uint8_t> encode(const std::exception_ptr& error) {
  Json json;
  try {
    std::rethrow_exception(error);
  } catch (const CorruptData& corrupt) {
    json = {{"corrupt", corrupt.reason()}, {"offset", corrupt.offset()}};
  } catch (const Unsupported& unsupported) {
    json = {{"unsupported", unsupported.what()}, {"hint", unsupported.hint()}};
  } catch (const std::bad_alloc&) {
    json = {{"corrupt", "it asks for more memory than a scan may take"}, {"offset", 0}};
  } catch (const std::exception& other) {
    json = {{"failed", other.what()}};
  }
  return Json::to_cbor(json);
}

ShardIndex decode(std::span<const std::uint8_t> message, const std::filesystem::path& path,
                  std::uint64_t bytes) {
  ShardIndex index;
  try {
    const Json json = Json::from_cbor(message);
    if (json.contains("corrupt")) {
      throw CorruptData(path, json.at("offset").get<std::uint64_t>(),
                        json["corrupt"].get<std::string>());
    }
    if (json.contains("unsupported")) {
      throw Unsupported(json["unsupported"].get<std::string>(), json.at("hint").get<std::string>());
    }
    if (json.contains("failed")) {
      throw IoError("cannot scan: " + json["failed"].get<std::string>(), path, 0);
    }
    index = index_from(json);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    throw CorruptData(path, 0, "the HDF5 library went astray on it");
  }
  if (index.bytes != bytes) throw CorruptData(path, 0, "the file changed while it was scanned");
  if (!has_sound_places(index)) throw CorruptData(path, 0, "the HDF5 library went astray on it");
  return index;
}

}  // namespace precache::hdf5
