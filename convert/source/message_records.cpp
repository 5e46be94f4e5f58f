// SPDX-License-Identifier: Apache-2.0
#include "convert/source/message_records.hpp"

#include <fmt/format.h>

#include <utility>

#include "convert/source/protobuf/message_images.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

[[noreturn]] void refuse_label(const MessageImage& image, const std::string& record,
                               const Labelling& labelling) {
  constexpr const char* kHint =
      "Name the field of labels in `label_key`, or set `labels` to none or to a CSV file.";
  const std::string& key = labelling.label_key;
  throw InvalidArgument(
      key.empty()
          ? fmt::format("`label_key` must say which field of {} is the label", labelling.message)
      : image.label_fault.empty()
          ? fmt::format("{} has no label in '{}'", record, key)
          : fmt::format("'{}' in {} {}; a label must be one integer or name", key, record,
                        image.label_fault),
      kHint);
}

}  // namespace

MessagePaths message_paths(const Labelling& labelling) {
  if (labelling.proto.empty() || labelling.message.empty()) {
    throw InvalidArgument("`proto` and `message` must be given together",
                          "`proto` is a descriptor set, `message` the full name of the message in "
                          "each record.");
  }
  const bool wants_labels = labelling.kind == Labelling::Kind::kSource;
  MessagePaths paths = find_message_paths(labelling.proto, labelling.message, labelling.image_key,
                                          wants_labels ? labelling.label_key : "");
  if (paths.label) {
    // Class names that are fixed decide which number each has.
    paths.label->has_enum_labels = !labelling.classes.empty() || !enum_classes(paths).empty();
  }
  return paths;
}

std::vector<std::string> enum_classes(const MessagePaths& paths) {
  std::vector<std::string> classes;
  if (!paths.label) return classes;
  for (const auto& [number, name] : paths.label->enum_names) {
    if (number != static_cast<std::int32_t>(classes.size())) return {};
    classes.push_back(name);
  }
  return classes;
}

RecordImages scan_messages(std::span<const std::byte> file, const std::filesystem::path& path,
                           std::uint32_t shard, const MessagePaths& paths,
                           const Labelling& labelling) {
  const bool wants_labels = labelling.kind == Labelling::Kind::kSource;
  RecordImages found;
  MessageImages finder(paths);
  tfrecord::RecordCursor records(file, path);
  for (std::size_t number = 0; const auto record = records.next(); ++number) {
    if (!tfrecord::has_right_crc(*record, file)) {
      throw CorruptData(path, record->data, "the CRC of a record's data is wrong");
    }
    const auto* const images = finder.find(file.subspan(record->data, record->data_bytes));
    if (images == nullptr) {
      throw CorruptData(path, record->data,
                        fmt::format("record {} is not a {} message", number, labelling.message));
    }
    for (std::size_t i = 0; i < images->size(); ++i) {
      const MessageImage& image = (*images)[i];
      const bool has_bytes = !image.bytes.empty();
      if (wants_labels && image.label.value_or("").empty()) {
        refuse_label(image, fmt::format("record {} of '{}'", number, path.string()), labelling);
      }
      if (has_bytes && !std::exchange(found.has_image, true)) {
        refuse_undecoded(image_file_kind(image.bytes),
                         fmt::format("'{}' of '{}'", labelling.image_key, path.string()));
      }
      const std::uint64_t offset =
          has_bytes ? static_cast<std::uint64_t>(image.bytes.data() - file.data()) : record->data;
      std::string name = numbered_name(path, number);
      if (finder.may_have_several()) name += fmt::format("-{}", i);
      found.records.add({name, image.bytes.size(), 0, -1, shard, offset});
      if (wants_labels) found.labels.add(*image.label);
    }
  }
  return found;
}

}  // namespace precache
