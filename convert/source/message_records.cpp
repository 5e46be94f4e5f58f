// SPDX-License-Identifier: Apache-2.0
#include "convert/source/message_records.hpp"

#include <fmt/format.h>

#include "convert/image/decode/image_kind.hpp"
#include "convert/source/numbered_name.hpp"
#include "convert/source/protobuf/message_images.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

class MessageScanner {
 public:
  MessageScanner(std::span<const std::byte> file, const std::filesystem::path& path,
                 std::uint32_t shard, const MessagePaths& paths, const Labelling& labelling)
      : file_(file),
        path_(path),
        shard_(shard),
        images_(paths),
        labelling_(labelling),
        wants_labels_(labelling.kind == Labelling::Kind::kSource) {}

  RecordImages run() && {
    tfrecord::RecordCursor records(file_, path_);
    for (std::size_t number = 0; const auto record = records.next(); ++number) {
      if (!tfrecord::has_right_crc(*record, file_)) {
        throw CorruptData(path_, record->data, "the CRC of a record's data is wrong");
      }
      take(*record, number);
    }
    return std::move(found_);
  }

 private:
  void take(const tfrecord::Record& record, std::size_t number) {
    const auto* const images = images_.find(file_.subspan(record.data, record.data_bytes));
    if (images == nullptr) {
      throw CorruptData(path_, record.data,
                        fmt::format("record {} is not a {} message", number, labelling_.message));
    }
    const std::string record_name = numbered_name(path_, number);
    for (std::size_t i = 0; i < images->size(); ++i) {
      const MessageImage& image = (*images)[i];
      if (wants_labels_ && image.label.value_or("").empty()) refuse(image, number);
      const std::string name =
          images_.may_have_several() ? fmt::format("{}-{}", record_name, i) : record_name;
      const std::uint64_t offset =
          image.bytes.empty() ? record.data
                              : static_cast<std::uint64_t>(image.bytes.data() - file_.data());
      if (!image.bytes.empty() && !found_.has_image) {
        refuse_other_kind(image.bytes);
        found_.has_image = true;
      }
      found_.records.add({name, image.bytes.size(), 0, -1, shard_, offset});
      if (wants_labels_) found_.labels.add(*image.label);
    }
  }

  /// Throws Unsupported for images that no decoder here reads.
  void refuse_other_kind(std::span<const std::byte> image) const {
    const std::string_view kind = image_file_kind(image);
    if (kind.empty() || image_kind(image) != ImageKind::kOther) return;
    throw Unsupported(
        fmt::format("'{}' of '{}' holds {} images", labelling_.image_key, path_.string(), kind),
        "precache reads JPEG and PNG: convert the images to one of these first.");
  }

  [[noreturn]] void refuse(const MessageImage& image, std::size_t number) const {
    constexpr const char* kHint =
        "Name the field of labels in `label_key`, or set `labels` to none or to a CSV file.";
    if (labelling_.label_key.empty()) {
      throw InvalidArgument(fmt::format("`label_key` does not say which field of {} the label is",
                                        labelling_.message),
                            kHint);
    }
    throw InvalidArgument(
        image.label_fault.empty()
            ? fmt::format("record {} of '{}' has no label in '{}'", number, path_.string(),
                          labelling_.label_key)
            : fmt::format("'{}' in record {} of '{}' {}; a label is one integer or name",
                          labelling_.label_key, number, path_.string(), image.label_fault),
        kHint);
  }

  std::span<const std::byte> file_;
  const std::filesystem::path& path_;
  std::uint32_t shard_;
  MessageImages images_;
  const Labelling& labelling_;
  bool wants_labels_;
  RecordImages found_;
};

}  // namespace

MessagePaths message_paths(const Labelling& labelling) {
  if (labelling.proto.empty() || labelling.message.empty()) {
    throw InvalidArgument("`proto` and `message` need each other",
                          "`proto` is a descriptor set, `message` the full name of the message in "
                          "it that each record is.");
  }
  const bool wants_labels = labelling.kind == Labelling::Kind::kSource;
  MessagePaths paths = find_message_paths(labelling.proto, labelling.message, labelling.image_key,
                                          wants_labels ? labelling.label_key : "");
  if (paths.label) {
    // Names of classes that are fixed by others decide over their numbers.
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
  return MessageScanner(file, path, shard, paths, labelling).run();
}

}  // namespace precache
