// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "precache/tools/inspect.hpp"

// docs/formats/inspect.schema.json specifies this JSON; change both together.
namespace precache {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kVersion = 1;

template <typename T>
Json or_null(const T& value) {
  return value;
}
template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json null_if_empty(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// The key of a member: `complete` for `is_complete`.
constexpr const char* key_of(std::string_view member) {
  return member.starts_with("is_") ? member.data() + 3 : member.data();
}

}  // namespace

// The JSON library finds these functions by type, including in lists and optionals. The macro
// writes the ones whose keys are the names of their members.
#define PRECACHE_FACT(member) json[key_of(#member)] = or_null(facts.member);
#define PRECACHE_FACTS(Type, ...)                                         \
  static void to_json(Json& json, const Type& facts) {                    \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(PRECACHE_FACT, __VA_ARGS__)) \
  }

static void to_json(Json& json, const ValueRange& range) {
  if (range.count == 0) return;  // null
  json = {{"min", range.smallest},
          {"max", range.largest},
          {"mean", static_cast<double>(range.total) / static_cast<double>(range.count)}};
}

static void to_json(Json& json, const TensorSpec& spec) {
  json = {{"dtype", name(spec.dtype)},
          {"shape", spec.shape()},
          {"layout", name(spec.layout)},
          {"bytes", spec.size_bytes()}};
}

static void to_json(Json& json, const AccessFacts& access) {
  constexpr std::array kBatches{"views", "gathered", "none"};
  json = {{"zero_copy", access.batches == AccessFacts::Batches::kViews},
          {"batches", kBatches.at(static_cast<std::size_t>(access.batches))},
          {"reason", access.reason},
          {"stride_bytes", or_null(access.stride_bytes)},
          {"alignment_bytes", or_null(access.alignment_bytes)}};
}

static void to_json(Json& json, const NamedColumn& column) {
  json = {{"name", column.name}, {"type", name(column.type)}, {"shape", column.shape}};
  if (!column.value_names.empty()) json["names"] = column.value_names;
}
PRECACHE_FACTS(SplitFacts, name, samples, files, bytes, skipped, seed, shuffled, columns)

static void to_json(Json& json, const ClassCount& count) {
  json = {{"label", count.label}, {"name", null_if_empty(count.name)}, {"samples", count.samples}};
}
PRECACHE_FACTS(ClassFacts, named, labels_read, is_complete, unlabelled, uncounted, counts)

PRECACHE_FACTS(ChannelFacts, min, max, mean, std, non_finite, histogram)

static void to_json(Json& json, const ValueFacts& values) {
  json = {{"samples_read", values.samples_read},
          {"complete", values.is_complete},
          {"decoded", values.is_decoded},
          {"histogram_range", {values.low, values.high}},
          {"channels", values.channels}};
}

PRECACHE_FACTS(EncodedFacts, samples_read, is_complete, kinds, bytes, width, height, undecodable)

static void to_json(Json& json, const TarContents::Extension& extension) {
  json = {{"name", extension.name}, {"files", extension.bytes.count}, {"bytes", extension.bytes}};
}
PRECACHE_FACTS(TarContents::Pattern, extensions, samples)
PRECACHE_FACTS(TarContents, files, directories, links, sparse_files, others, ungrouped_files,
               samples, extensions, patterns, has_more)

/// Adds what features of Examples and fields of other messages have in common.
template <typename Field>
static void add_values(Json& json, const Field& field) {
  json["records"] = field.records;
  json["values"] = field.values;
  json["bytes"] = field.bytes;
  json["content"] = null_if_empty(field.content);
}

static void to_json(Json& json, const TfrecordContents::Feature& feature) {
  json = {{"name", feature.name}, {"kind", feature.kind}, {"sequence", feature.is_sequence}};
  add_values(json, feature);
}

static void to_json(Json& json, const MessageContents::Field& field) {
  json = {{"path", field.path}, {"type", field.type}, {"wire_type", or_null(field.wire_type)}};
  add_values(json, field);
}

static void to_json(Json& json, const MessageContents& messages) {
  json = {{"message", null_if_empty(messages.message)},
          {"records", messages.records},
          {"malformed", messages.malformed},
          {"fields", messages.fields},
          {"has_more", messages.has_more}};
}
PRECACHE_FACTS(TfrecordContents, records, examples, sequence_examples, record_bytes, features,
               has_more, messages)

static void to_json(Json& json, const Hdf5Contents::Object& object) {
  json = {{"name", object.name}, {"kind", object.kind}};
  if (object.kind == "dataset") {
    json["type"] = object.type;
    json["shape"] = object.shape;
    json["storage"] = object.storage;
    json["chunk"] = object.chunk.empty() ? Json(nullptr) : Json(object.chunk);
    json["filters"] = object.filters;
    json["offset"] = or_null(object.offset);
    json["stored_bytes"] = object.stored_bytes;
  } else if (!object.target.empty()) {
    json["target"] = object.target;
  }
}
PRECACHE_FACTS(Hdf5Contents, objects, has_more)

static void to_json(Json& json, const ShardFault& fault) {
  json = {
      {"file", fault.file.string()}, {"offset", or_null(fault.offset)}, {"reason", fault.reason}};
}

static Json contents_json(const Inspection& facts) {
  if (!facts.tar && !facts.tfrecord && !facts.hdf5) return nullptr;
  Json json{{"extent", null_if_empty(facts.contents_extent)}};
  if (facts.tar) json["tar"] = *facts.tar;
  if (facts.tfrecord) json["tfrecord"] = *facts.tfrecord;
  if (facts.hdf5) json["hdf5"] = *facts.hdf5;
  return json;
}

static void to_json(Json& json, const Inspection& facts) {
  constexpr std::array kKinds{"dataset", "shards", "shard", "file"};
  json = {{"path", facts.path.string()},
          {"kind", kKinds.at(static_cast<std::size_t>(facts.kind))},
          {"format", null_if_empty(facts.format)},
          {"manifest", facts.has_manifest},
          {"content", null_if_empty(facts.content)},
          {"compression", null_if_empty(facts.compression)},
          {"files", facts.files},
          {"files_read", facts.files_read},
          {"bytes", facts.bytes},
          {"samples", or_null(facts.samples)},
          {"splits", facts.splits},
          {"tensor", or_null(facts.spec)},
          {"overhead_bytes", or_null(facts.overhead_bytes())},
          {"access", facts.access},
          {"recipe", facts.recipe ? Json::parse(facts.recipe->to_json()) : Json(nullptr)},
          {"classes", or_null(facts.classes)},
          {"values", or_null(facts.values)},
          {"encoded", or_null(facts.encoded)},
          {"first_keys", facts.first_keys},
          {"contents", contents_json(facts)},
          {"unsupported_reasons", facts.unsupported_reasons},
          {"faults", facts.faults}};
}

std::string to_json(const std::vector<Inspection>& inspections) {
  const Json json{{"version", kVersion}, {"paths", inspections}};
  // Names in shards are bytes. Those that are not UTF-8 are replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace precache
