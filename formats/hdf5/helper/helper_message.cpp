// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/helper/helper_message.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "precache/formats/error.hpp"

using Json = nlohmann::json;

namespace nlohmann {

template <typename T>
struct adl_serializer<std::optional<T>> {
  static void to_json(json& json, const std::optional<T>& value) {
    if (value) json = *value;
  }
  static void from_json(const json& json, std::optional<T>& value) {
    if (!json.is_null()) value = json.get<T>();
  }
};

}  // namespace nlohmann

namespace precache {

static void to_json(Json& json, DType dtype) { json = name(dtype); }
static void from_json(const Json& json, DType& dtype) {
  dtype = parse_dtype(json.get<std::string>());
}
static void to_json(Json& json, Layout layout) { json = name(layout); }
static void from_json(const Json& json, Layout& layout) {
  layout = parse_layout(json.get<std::string>());
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorSpec, dtype, layout, height, width, channels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PixelArray, type, layout, height, width, channels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Column, base, stride, type)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShardColumns, image, label, key, crc32c)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShardIndex, bytes, samples, spec, obstacle, columns, keys,
                                   classes, label_names, mismatched_labels, maybe_labels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hdf5Contents::Object, name, kind, target, type, shape, storage,
                                   chunk, filters, offset, stored_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hdf5Contents, objects, has_more)

namespace hdf5 {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ImageRows, name, count, array, row_bytes, offset, labels,
                                   maybe_labels, keys, classes)

namespace {

using Blob = Json::binary_t::container_type;  // std::vector<std::uint8_t>
using Answer = std::span<const std::uint8_t>;
using Path = std::filesystem::path;

// Counts up when requests or answers change: the command may be of another version than the reader.
constexpr int kProtocol = 2;
constexpr std::size_t kRequestWords = 6;

Message to_message(Json json) {
  json["protocol"] = kProtocol;
  return Json::to_cbor(json);
}

/// Throws the error that an answer tells of.
void rethrow(const Json& json, const Path& path) {
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

[[noreturn]] void refuse_answer(const Path& path) {
  throw CorruptData(path, 0, "the HDF5 library gave an impossible answer about it");
}

/// What `read` makes of an answer that is no error.
template <typename Read>
auto decode_by(const Read& read, Answer message, const Path& path) {
  try {
    const Json json = Json::from_cbor(message);
    if (json.at("protocol") != kProtocol) {
      throw Unsupported("the `precache` command that reads HDF5 files has another version",
                        "Install the command and this library from one version.");
    }
    rethrow(json, path);
    return read(json);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    refuse_answer(path);
  }
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

/// Columns are checked when they are read; places are not.
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

bool is_sound(const ImageRows& rows, std::uint64_t bytes) {
  const auto one_for_each = [&](const std::vector<std::string>& texts) {
    return texts.empty() || texts.size() == rows.count;
  };
  const auto is_array_of_row = [&](const PixelArray& array) {
    return array.type <= PixelType::kFloat32 && array.channels <= 4 &&
           std::uint64_t{array.height} * array.width <= kLargestRow &&
           array.size_bytes() == rows.row_bytes;
  };
  if (rows.count > bytes || rows.row_bytes > kLargestRow) return false;
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(rows.count, rows.row_bytes, &size)) return false;
  return one_for_each(rows.labels) && one_for_each(rows.keys) &&
         (!rows.array || is_array_of_row(*rows.array)) &&
         (!rows.offset || (rows.row_bytes != 0 && lies_within(*rows.offset, size, bytes)));
}

}  // namespace

std::vector<std::string> words_of(const HelperRequest& request) {
  return {std::to_string(static_cast<int>(request.kind)),
          request.file.string(),
          request.shown_as.string(),
          request.keys.image,
          request.keys.label,
          request.keys.without_labels ? "without labels" : ""};
}

HelperRequest request_from(std::span<char* const> words) {
  using Kind = HelperRequest::Kind;
  for (const Kind kind : {Kind::kIndex, Kind::kRows, Kind::kContents, Kind::kCheck}) {
    if (words.size() != kRequestWords || words[0] != std::to_string(static_cast<int>(kind))) {
      continue;
    }
    return {kind, words[1], words[2], {words[3], words[4], *words[5] != '\0'}};
  }
  throw InvalidArgument("this is not a request to read an HDF5 file");
}

Message encode(const ShardIndex& index) {
  static_assert(std::is_trivially_copyable_v<SampleLocation>);
  Json json = index;
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(index.places.data());
  json["places"] = Json::binary(Blob(begin, begin + index.places.size() * sizeof(SampleLocation)));
  return to_message(std::move(json));
}

Message encode(const ImageRows& rows) { return to_message(rows); }

Message encode(const Hdf5Contents& contents) { return to_message(contents); }

Message encode(std::uint64_t count) { return to_message({{"count", count}}); }

Message encode(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CorruptData& corrupt) {
    return to_message({{"corrupt", corrupt.reason()}, {"offset", corrupt.offset()}});
  } catch (const Unsupported& unsupported) {
    return to_message({{"unsupported", unsupported.what()}, {"hint", unsupported.hint()}});
  } catch (const InvalidArgument& invalid) {
    return to_message({{"invalid", invalid.what()}, {"hint", invalid.hint()}});
  } catch (const std::bad_alloc&) {
    return to_message({{"corrupt", "it asks for more memory than a scan may take"}, {"offset", 0}});
  } catch (const std::exception& other) {
    return to_message({{"failed", other.what()}});
  }
}

ShardIndex decode_index(Answer message, const Path& path, std::uint64_t bytes) {
  const auto read = [](const Json& json) {
    ShardIndex index = json.get<ShardIndex>();
    index.format = Format::kHdf5;
    index.places = places_from(json.at("places").get_binary());
    return index;
  };
  ShardIndex index = decode_by(read, message, path);
  if (index.bytes != bytes) throw CorruptData(path, 0, "the file changed while it was scanned");
  if (!has_sound_places(index)) refuse_answer(path);
  return index;
}

ImageRows decode_rows(Answer message, const Path& path, std::uint64_t bytes) {
  ImageRows rows = decode_by([](const Json& json) { return json.get<ImageRows>(); }, message, path);
  if (!is_sound(rows, bytes)) refuse_answer(path);
  return rows;
}

Hdf5Contents decode_contents(Answer message, const Path& path) {
  return decode_by([](const Json& json) { return json.get<Hdf5Contents>(); }, message, path);
}

std::uint64_t decode_count(Answer message, const Path& path) {
  return decode_by([](const Json& json) { return json.at("count").get<std::uint64_t>(); }, message,
                   path);
}

}  // namespace hdf5
}  // namespace precache
