// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/tfrecord_records.hpp"

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/little_endian.hpp"
#include "precache/formats/error.hpp"

namespace precache::tfrecord {

bool has_length(std::span<const std::byte> bytes) {
  return bytes.size() >= kLengthBytes &&
         little_endian(bytes.subspan(8, 4)) == crc32c::masked(crc32c::value(bytes.first(8)));
}

bool has_right_crc(const Record& record, std::span<const std::byte> file) {
  const auto data = file.subspan(record.data, record.data_bytes);
  const auto footer = file.subspan(record.data + record.data_bytes, kFooterBytes);
  return little_endian(footer) == crc32c::masked(crc32c::value(data));
}

std::optional<Record> RecordCursor::next() {
  const auto rest = file_.subspan(at_);
  if (rest.empty()) return std::nullopt;
  if (rest.size() < kLengthBytes) throw CorruptData(path_, at_, "the file ends inside a length");
  if (!has_length(rest)) throw CorruptData(path_, at_, "the CRC of a record's length is wrong");
  const std::uint64_t length = little_endian(rest.first(8));
  const std::uint64_t after_length = rest.size() - kLengthBytes;
  if (after_length < kFooterBytes || length > after_length - kFooterBytes) {
    throw CorruptData(path_, at_, "a record runs past the end of the file");
  }
  const std::uint64_t data = at_ + kLengthBytes;
  const Record record{at_, data, length, data + length + kFooterBytes};
  at_ = record.end;
  return record;
}

}  // namespace precache::tfrecord
