// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5/helper/helper_message.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
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
// One blob, since a large file has millions of them.
static void to_json(Json& json, const std::vector<SampleLocation>& places) {
  static_assert(std::is_trivially_copyable_v<SampleLocation>);
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(places.data());
  json = Json::binary({begin, begin + places.size() * sizeof(SampleLocation)});
}
static void from_json(const Json& json, std::vector<SampleLocation>& places) {
  const auto& blob = json.get_binary();
  if (blob.size() % sizeof(SampleLocation) != 0)
    throw std::length_error("the last location is incomplete");
  places.resize(blob.size() / sizeof(SampleLocation));
  if (!blob.empty()) std::memcpy(places.data(), blob.data(), blob.size());
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorSpec, dtype, layout, height, width, channels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PixelArray, type, layout, height, width, channels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Column, base, stride, type)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShardColumns, image, label, key, crc32c, named)
static void to_json(Json& json, const SharedColumns& columns) { json = *columns; }
static void from_json(const Json& json, SharedColumns& columns) {
  columns = json.get<ShardColumns>();
}
static void to_json(Json& json, ValueType type) { json = name(type); }
static void from_json(const Json& json, ValueType& type) {
  type = parse_value_type(json.get<std::string>());
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NamedColumn, name, type, shape, value_names)
static void to_json(Json& json, const NamedColumns& columns) {
  json = columns ? *columns : std::vector<NamedColumn>();
}
static void from_json(const Json& json, NamedColumns& columns) {
  auto named = json.get<std::vector<NamedColumn>>();
  validate(named);
  if (!named.empty()) columns = std::make_shared<const std::vector<NamedColumn>>(std::move(named));
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ShardIndex, format, bytes, samples, spec, unsupported_reason,
                                   columns, named, places, keys, classes, label_names,
                                   mismatched_labels, maybe_labels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hdf5Contents::Object, name, kind, target, type, shape, storage,
                                   chunk, filters, offset, stored_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hdf5Contents, objects, has_more)

namespace hdf5 {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ImageRows, name, count, array, row_bytes, offset, labels,
                                   maybe_labels, keys, classes)

namespace {

using Path = std::filesystem::path;

// Increased when requests or answers change: the command may have another version than the reader.
constexpr int kProtocol = 5;
constexpr std::size_t kRequestWords = 6;

Message to_message(Json json) {
  json["protocol"] = kProtocol;
  return Json::to_cbor(json);
}

/// Throws the error that an answer reports, if it reports one.
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
  throw CorruptData(path, 0,
                    "the HDF5 library returned an invalid result; the file is probably corrupt");
}

bool lies_within(std::uint64_t begin, std::uint64_t size, std::uint64_t whole) {
  return begin <= whole && size <= whole - begin;
}

// Whether an answer about a file of `bytes` bytes can be true.

template <typename Answer>
bool is_sound(const Answer&, std::uint64_t) {
  return true;
}

/// Columns are checked when they are read; places are not.
bool is_sound(const ShardIndex& index, std::uint64_t bytes) {
  return index.format == Format::kHdf5 &&
         (index.places.empty() || index.places.size() == index.samples) &&
         std::ranges::all_of(index.places, [&](const SampleLocation& place) {
           return lies_within(place.payload, place.payload_bytes, bytes) &&
                  lies_within(place.key_begin, place.key_bytes, index.keys.size()) &&
                  place.record <= bytes &&
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
  using enum HelperRequest::Kind;
  for (const auto kind : {kIndex, kRows, kContents, kCheck}) {
    if (words.size() != kRequestWords || words[0] != std::to_string(static_cast<int>(kind))) {
      continue;
    }
    return {kind, words[1], words[2], {words[3], words[4], *words[5] != '\0'}};
  }
  throw InvalidArgument("this is not a request to read an HDF5 file");
}

template <typename Answer>
Message encode(const Answer& answer) {
  return to_message({{"answer", answer}});
}

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
    return to_message(
        {{"corrupt", "reading it needs more memory than a scan may use"}, {"offset", 0}});
  } catch (const std::exception& other) {
    return to_message({{"failed", other.what()}});
  }
}

template <typename Answer>
Answer decode(std::span<const std::uint8_t> message, const Path& path, std::uint64_t bytes) {
  try {
    const Json json = Json::from_cbor(message);
    if (json.at("protocol") != kProtocol) {
      throw Unsupported("the precache command that reads HDF5 files has another version",
                        "Install the command and this library from one version.");
    }
    rethrow(json, path);
    Answer answer = json.at("answer").get<Answer>();
    if constexpr (std::is_same_v<Answer, ShardIndex>) {
      if (answer.bytes != bytes)
        throw CorruptData(path, 0, "the file changed while it was scanned");
    }
    if (is_sound(answer, bytes)) return answer;
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    refuse_answer(path);
  }
  refuse_answer(path);
}

template Message encode(const ShardIndex&);
template Message encode(const ImageRows&);
template Message encode(const Hdf5Contents&);
template Message encode(const std::uint64_t&);
template ShardIndex decode(std::span<const std::uint8_t>, const Path&, std::uint64_t);
template ImageRows decode(std::span<const std::uint8_t>, const Path&, std::uint64_t);
template Hdf5Contents decode(std::span<const std::uint8_t>, const Path&, std::uint64_t);
template std::uint64_t decode(std::span<const std::uint8_t>, const Path&, std::uint64_t);

}  // namespace hdf5
}  // namespace precache
