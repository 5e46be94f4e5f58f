// SPDX-License-Identifier: Apache-2.0
// TFRecord files and their Examples, as the reader, build and
// inspect see them.
#include "convert/source/protobuf/message_images.hpp"
#include "convert/source/tfrecord_images.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/shard/contents_survey.hpp"
#include "formats/shard/scan.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "reader/tools/inspect/raw_messages.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/read_index.hpp"

namespace {

using namespace precache;

void write_crc(std::span<std::uint8_t> place, std::span<const std::uint8_t> of) {
  std::uint32_t crc = crc32c::masked(crc32c::value(std::as_bytes(of)));
  for (std::uint8_t& byte : place) {
    byte = static_cast<std::uint8_t>(crc);
    crc >>= 8;
  }
}

/// Corrects the CRCs of all records that fit in the file. Shortens a length that runs past its end.
void repair_crcs(std::span<std::uint8_t> file) {
  constexpr std::size_t kFraming = tfrecord::kLengthBytes + tfrecord::kFooterBytes;
  while (file.size() >= kFraming) {
    std::uint64_t length = little_endian(std::as_bytes(file.first(8)));
    for (std::size_t i = 7; length > file.size() - kFraming && i > 0; --i) {
      file[i] = 0;
      length = little_endian(std::as_bytes(file.first(8)));
    }
    write_crc(file.subspan(8, 4), file.first(8));
    if (length > file.size() - kFraming) return;
    const auto data = file.subspan(tfrecord::kLengthBytes, length);
    write_crc(file.subspan(tfrecord::kLengthBytes + length, tfrecord::kFooterBytes), data);
    file = file.subspan(kFraming + length);
  }
}

/// Reads the file as a source of a build.
void list(std::span<const std::byte> file, Labelling::Kind kind) {
  Labelling labelling;
  labelling.kind = kind;
  const RecordImages found = scan_records(file, "fuzz.tfrecord", 0, labelling);
  for (std::size_t i = 0; i < found.records.size(); ++i) {
    const ListedFile record = found.records[i];
    fuzz::expect(record.offset <= file.size() && record.size <= file.size() - record.offset,
                 "a record lies in the file");
    fuzz::may_refuse([&] {
      (void)image_of_record(file.subspan(record.offset, record.size), found.image_key,
                            "fuzz.tfrecord", record.offset);
    });
  }
}

/// Reads records as messages that have an image in one of two groups of a repeated message.
void find_in_messages(std::span<const std::byte> file) {
  const MessageStep messages{.name = "1", .number = 1, .is_repeated = true};
  const MessageStep group{.name = "2", .number = 2, .is_group = true, .rivals = {3}};
  const MessageStep image{.name = "1", .number = 1};
  const LabelField label{{messages, {.name = "3", .number = 3, .is_repeated = true}}};
  MessageImages images({{messages, group, image}, label});
  tfrecord::RecordCursor records(file, "fuzz.tfrecord");
  while (const auto record = records.next()) {
    const auto* const found = images.find(file.subspan(record->data, record->data_bytes));
    if (found == nullptr) continue;
    for (const MessageImage& one : *found) {
      fuzz::expect(one.bytes.empty() || (one.bytes.data() >= file.data() + record->data &&
                                         one.bytes.data() + one.bytes.size() <=
                                             file.data() + record->data + record->data_bytes),
                   "an image lies in its record");
    }
  }
}

void survey(std::span<const std::byte> file) {
  RawMessages messages;
  tfrecord::ContentsSurvey contents(&messages);
  fuzz::may_refuse([&] { contents.add(file, "fuzz.tfrecord"); });
  (void)contents.result();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  return fuzz::mutate_and_repair(data, size, most, seed, repair_crcs);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::bytes_of(data, size);
  const TensorSpec given{DType::kFloat32, Layout::kHwc, 2, 2, 3};
  fuzz::may_refuse([&] { (void)detect_format(file, "fuzz.tfrecord"); });
  fuzz::may_refuse_source([&] { list(file, Labelling::Kind::kSource); });
  fuzz::may_refuse_source([&] { list(file, Labelling::Kind::kNone); });
  fuzz::may_refuse([&] { find_in_messages(file); });
  survey(file);
  fuzz::read_all(fuzz::scanned([&] { return tfrecord::scan(file, "fuzz.tfrecord", {}); }), file);
  fuzz::read_all(fuzz::scanned([&] { return tfrecord::scan(file, "fuzz.tfrecord", given); }), file);
  return 0;
}
