// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "precache/tools/inspect.hpp"

// docs/formats/inspect.schema.json specifies what is made here; both change together.
namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

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

Json range_json(const Range& range) {
  if (range.count == 0) return nullptr;
  return {{"min", range.smallest},
          {"max", range.largest},
          {"mean", static_cast<double>(range.total) / static_cast<double>(range.count)}};
}

Json tensor_json(const std::optional<TensorSpec>& spec) {
  if (!spec) return nullptr;
  return {{"dtype", name(spec->dtype)},
          {"shape", spec->shape()},
          {"layout", name(spec->layout)},
          {"bytes", spec->size_bytes()}};
}

Json access_json(const AccessFacts& access) {
  constexpr std::array kBatches{"views", "gathered", "none"};
  return {{"zero_copy", access.batches == AccessFacts::Batches::kViews},
          {"batches", kBatches[static_cast<std::size_t>(access.batches)]},
          {"reason", access.reason},
          {"stride_bytes", or_null(access.stride_bytes)},
          {"alignment_bytes", or_null(access.alignment_bytes)}};
}

Json splits_json(const std::vector<SplitFacts>& splits) {
  Json all = Json::array();
  for (const SplitFacts& split : splits) {
    all.push_back({{"name", split.name},
                   {"samples", split.samples},
                   {"files", split.files},
                   {"bytes", split.bytes},
                   {"skipped", split.skipped},
                   {"seed", split.seed},
                   {"shuffled", split.shuffled}});
  }
  return all;
}

Json classes_json(const std::optional<ClassFacts>& classes) {
  if (!classes) return nullptr;
  Json counts = Json::array();
  for (const ClassCount& count : classes->counts) {
    counts.push_back(
        {{"label", count.label}, {"name", text_or_null(count.name)}, {"samples", count.samples}});
  }
  return {{"named", classes->named},          {"labels_read", classes->labels_read},
          {"complete", classes->is_complete}, {"unlabelled", classes->unlabelled},
          {"uncounted", classes->uncounted},  {"counts", std::move(counts)}};
}

Json values_json(const std::optional<ValueFacts>& values) {
  if (!values) return nullptr;
  Json channels = Json::array();
  for (const ChannelFacts& channel : values->channels) {
    channels.push_back({{"min", channel.min},
                        {"max", channel.max},
                        {"mean", channel.mean},
                        {"std", channel.std},
                        {"non_finite", channel.non_finite},
                        {"histogram", channel.histogram}});
  }
  return {{"samples_read", values->samples_read},
          {"complete", values->is_complete},
          {"decoded", values->is_decoded},
          {"histogram_range", {values->low, values->high}},
          {"channels", std::move(channels)}};
}

Json encoded_json(const std::optional<EncodedFacts>& encoded) {
  if (!encoded) return nullptr;
  return {{"samples_read", encoded->samples_read},
          {"complete", encoded->is_complete},
          {"kinds", encoded->kinds},
          {"bytes", range_json(encoded->bytes)},
          {"width", range_json(encoded->width)},
          {"height", range_json(encoded->height)},
          {"undecodable", encoded->undecodable}};
}

Json tar_json(const TarContents& tar) {
  Json extensions = Json::array();
  for (const auto& extension : tar.extensions) {
    extensions.push_back({{"name", extension.name},
                          {"files", extension.bytes.count},
                          {"bytes", range_json(extension.bytes)}});
  }
  Json patterns = Json::array();
  for (const auto& pattern : tar.patterns) {
    patterns.push_back({{"extensions", pattern.extensions}, {"samples", pattern.samples}});
  }
  return {{"files", tar.files},
          {"directories", tar.directories},
          {"links", tar.links},
          {"sparse_files", tar.sparse_files},
          {"others", tar.others},
          {"ungrouped_files", tar.ungrouped_files},
          {"samples", tar.samples},
          {"extensions", std::move(extensions)},
          {"patterns", std::move(patterns)},
          {"has_more", tar.has_more}};
}

Json messages_json(const std::optional<MessageContents>& messages) {
  if (!messages) return nullptr;
  Json fields = Json::array();
  for (const auto& field : messages->fields) {
    fields.push_back({{"path", field.path},
                      {"type", field.type},
                      {"wire_type", or_null(field.wire_type)},
                      {"records", field.records},
                      {"values", range_json(field.values)},
                      {"bytes", range_json(field.bytes)},
                      {"content", text_or_null(field.content)}});
  }
  return {{"message", text_or_null(messages->message)},
          {"records", messages->records},
          {"malformed", messages->malformed},
          {"fields", std::move(fields)},
          {"has_more", messages->has_more}};
}

Json tfrecord_json(const TfrecordContents& tfrecord) {
  Json features = Json::array();
  for (const auto& feature : tfrecord.features) {
    features.push_back({{"name", feature.name},
                        {"kind", feature.kind},
                        {"sequence", feature.is_sequence},
                        {"records", feature.records},
                        {"values", range_json(feature.values)},
                        {"bytes", range_json(feature.bytes)},
                        {"content", text_or_null(feature.content)}});
  }
  return {{"records", tfrecord.records},
          {"examples", tfrecord.examples},
          {"sequence_examples", tfrecord.sequence_examples},
          {"record_bytes", range_json(tfrecord.record_bytes)},
          {"features", std::move(features)},
          {"has_more", tfrecord.has_more},
          {"messages", messages_json(tfrecord.messages)}};
}

Json hdf5_json(const Hdf5Contents& hdf5) {
  Json objects = Json::array();
  for (const auto& object : hdf5.objects) {
    Json json{{"name", object.name}, {"kind", object.kind}};
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
    objects.push_back(std::move(json));
  }
  return {{"objects", std::move(objects)}, {"has_more", hdf5.has_more}};
}

Json contents_json(const Inspection& facts) {
  if (!facts.tar && !facts.tfrecord && !facts.hdf5) return nullptr;
  Json json{{"extent", text_or_null(facts.contents_extent)}};
  if (facts.tar) json["tar"] = tar_json(*facts.tar);
  if (facts.tfrecord) json["tfrecord"] = tfrecord_json(*facts.tfrecord);
  if (facts.hdf5) json["hdf5"] = hdf5_json(*facts.hdf5);
  return json;
}

Json faults_json(const std::vector<Fault>& faults) {
  Json all = Json::array();
  for (const Fault& fault : faults) {
    all.push_back({{"file", fault.file.string()},
                   {"offset", or_null(fault.offset)},
                   {"reason", fault.reason}});
  }
  return all;
}

Json inspection_json(const Inspection& facts) {
  return {{"path", facts.path.string()},
          {"kind", kind_name(facts.kind)},
          {"format", text_or_null(facts.format)},
          {"manifest", facts.has_manifest},
          {"content", text_or_null(facts.content)},
          {"compression", text_or_null(facts.compression)},
          {"files", facts.files},
          {"files_read", facts.files_read},
          {"bytes", facts.bytes},
          {"samples", or_null(facts.samples)},
          {"splits", splits_json(facts.splits)},
          {"tensor", tensor_json(facts.spec)},
          {"overhead_bytes", or_null(facts.overhead_bytes())},
          {"access", access_json(facts.access)},
          {"recipe", facts.recipe.empty() ? Json(nullptr) : Json::parse(facts.recipe)},
          {"classes", classes_json(facts.classes)},
          {"values", values_json(facts.values)},
          {"encoded", encoded_json(facts.encoded)},
          {"first_keys", facts.first_keys},
          {"contents", contents_json(facts)},
          {"obstacles", facts.obstacles},
          {"faults", faults_json(facts.faults)}};
}

}  // namespace

std::string to_json(const std::vector<Inspection>& inspections) {
  Json paths = Json::array();
  for (const Inspection& facts : inspections) paths.push_back(inspection_json(facts));
  const Json json{{"version", kVersion}, {"paths", std::move(paths)}};
  // Names inside shards are bytes; what is no UTF-8 in them is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace precache
