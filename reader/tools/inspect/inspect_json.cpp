// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <nlohmann/json.hpp>

#include "precache/tools/inspect.hpp"

// docs/formats/inspect.schema.json specifies what is made here; both change together.
namespace precache {

using Json = nlohmann::ordered_json;

namespace {

constexpr int kVersion = 1;

/// An optional or a string, which may be empty.
template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

const char* kind_name(Inspection::Kind kind) {
  switch (kind) {
    case Inspection::Kind::kDataset:
      return "dataset";
    case Inspection::Kind::kShards:
      return "shards";
    case Inspection::Kind::kShard:
      return "shard";
    case Inspection::Kind::kFile:
      break;
  }
  return "file";
}

}  // namespace

// The JSON library finds these by the types that it meets, also in lists and optionals.

static void to_json(Json& json, const ValueRange& range) {
  json = nullptr;
  if (range.count == 0) return;
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
          {"batches", kBatches[static_cast<std::size_t>(access.batches)]},
          {"reason", access.reason},
          {"stride_bytes", or_null(access.stride_bytes)},
          {"alignment_bytes", or_null(access.alignment_bytes)}};
}

static void to_json(Json& json, const SplitFacts& split) {
  json = {{"name", split.name},        {"samples", split.samples}, {"files", split.files},
          {"bytes", split.bytes},      {"skipped", split.skipped}, {"seed", split.seed},
          {"shuffled", split.shuffled}};
}

static void to_json(Json& json, const ClassCount& count) {
  json = {{"label", count.label}, {"name", or_null(count.name)}, {"samples", count.samples}};
}

static void to_json(Json& json, const ClassFacts& classes) {
  json = {{"named", classes.named},          {"labels_read", classes.labels_read},
          {"complete", classes.is_complete}, {"unlabelled", classes.unlabelled},
          {"uncounted", classes.uncounted},  {"counts", classes.counts}};
}

static void to_json(Json& json, const ChannelFacts& channel) {
  json = {{"min", channel.min},
          {"max", channel.max},
          {"mean", channel.mean},
          {"std", channel.std},
          {"non_finite", channel.non_finite},
          {"histogram", channel.histogram}};
}

static void to_json(Json& json, const ValueFacts& values) {
  json = {{"samples_read", values.samples_read},
          {"complete", values.is_complete},
          {"decoded", values.is_decoded},
          {"histogram_range", {values.low, values.high}},
          {"channels", values.channels}};
}

static void to_json(Json& json, const EncodedFacts& encoded) {
  json = {{"samples_read", encoded.samples_read},
          {"complete", encoded.is_complete},
          {"kinds", encoded.kinds},
          {"bytes", encoded.bytes},
          {"width", encoded.width},
          {"height", encoded.height},
          {"undecodable", encoded.undecodable}};
}

static void to_json(Json& json, const TarContents::Extension& extension) {
  json = {{"name", extension.name}, {"files", extension.bytes.count}, {"bytes", extension.bytes}};
}

static void to_json(Json& json, const TarContents::Pattern& pattern) {
  json = {{"extensions", pattern.extensions}, {"samples", pattern.samples}};
}

static void to_json(Json& json, const TarContents& tar) {
  json = {{"files", tar.files},       {"directories", tar.directories},
          {"links", tar.links},       {"sparse_files", tar.sparse_files},
          {"others", tar.others},     {"ungrouped_files", tar.ungrouped_files},
          {"samples", tar.samples},   {"extensions", tar.extensions},
          {"patterns", tar.patterns}, {"has_more", tar.has_more}};
}

static void to_json(Json& json, const TfrecordContents::Feature& feature) {
  json = {{"name", feature.name},
          {"kind", feature.kind},
          {"sequence", feature.is_sequence},
          {"records", feature.records},
          {"values", feature.values},
          {"bytes", feature.bytes},
          {"content", or_null(feature.content)}};
}

static void to_json(Json& json, const MessageContents::Field& field) {
  json = {{"path", field.path},
          {"type", field.type},
          {"wire_type", or_null(field.wire_type)},
          {"records", field.records},
          {"values", field.values},
          {"bytes", field.bytes},
          {"content", or_null(field.content)}};
}

static void to_json(Json& json, const MessageContents& messages) {
  json = {{"message", or_null(messages.message)},
          {"records", messages.records},
          {"malformed", messages.malformed},
          {"fields", messages.fields},
          {"has_more", messages.has_more}};
}

static void to_json(Json& json, const TfrecordContents& tfrecord) {
  json = {{"records", tfrecord.records},
          {"examples", tfrecord.examples},
          {"sequence_examples", tfrecord.sequence_examples},
          {"record_bytes", tfrecord.record_bytes},
          {"features", tfrecord.features},
          {"has_more", tfrecord.has_more},
          {"messages", or_null(tfrecord.messages)}};
}

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

static void to_json(Json& json, const Hdf5Contents& hdf5) {
  json = {{"objects", hdf5.objects}, {"has_more", hdf5.has_more}};
}

static void to_json(Json& json, const ShardFault& fault) {
  json = {
      {"file", fault.file.string()}, {"offset", or_null(fault.offset)}, {"reason", fault.reason}};
}

static Json contents_json(const Inspection& facts) {
  if (!facts.tar && !facts.tfrecord && !facts.hdf5) return nullptr;
  Json json{{"extent", or_null(facts.contents_extent)}};
  if (facts.tar) json["tar"] = *facts.tar;
  if (facts.tfrecord) json["tfrecord"] = *facts.tfrecord;
  if (facts.hdf5) json["hdf5"] = *facts.hdf5;
  return json;
}

static void to_json(Json& json, const Inspection& facts) {
  json = {{"path", facts.path.string()},
          {"kind", kind_name(facts.kind)},
          {"format", or_null(facts.format)},
          {"manifest", facts.has_manifest},
          {"content", or_null(facts.content)},
          {"compression", or_null(facts.compression)},
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
  // Names inside shards are bytes; those that are not UTF-8 are replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace precache
