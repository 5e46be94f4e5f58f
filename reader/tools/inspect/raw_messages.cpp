// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/inspect/raw_messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"

namespace precache {
namespace {

using tfrecord::FieldTally;
using tfrecord::WireCursor;
using tfrecord::WireType;

constexpr int kDeepestGuess = 10;  // deeper messages count as bytes, as in protoc
constexpr std::size_t kTextBytes = 256;

bool is_message(std::span<const std::byte> bytes) {
  WireCursor fields(bytes);
  while (fields.next()) {
  }
  return !fields.is_malformed();
}

/// True if the first bytes are printable characters or line ends.
bool is_text(std::span<const std::byte> bytes) {
  std::string_view rest = as_text(bytes.first(std::min(bytes.size(), kTextBytes)));
  while (!rest.empty()) {
    const std::size_t size = utf8_sequence_bytes(rest);
    if (size == 0) return bytes.size() > kTextBytes && rest.size() < 4;  // cut by the limit
    const auto letter = static_cast<unsigned char>(rest.front());
    if ((letter < 0x20 && letter != '\t' && letter != '\n' && letter != '\r') || letter == 0x7f) {
      return false;
    }
    rest.remove_prefix(size);
  }
  return true;
}

tfrecord::MessageTally::Type guessed_type(const FieldTally& field) {
  if (field.is_mixed) return {"mixed"};
  if (field.wire_type == WireType::kVarint) return {"varint"};
  if (field.wire_type == WireType::kFixed64) return {"fixed64"};
  if (field.wire_type == WireType::kFixed32) return {"fixed32"};
  if (field.wire_type == WireType::kGroup) return {"group", true};
  if (field.bytes.largest == 0) return {"empty"};
  if (field.may_be_text) return {"text"};
  return field.may_be_message ? tfrecord::MessageTally::Type{"message", true}
                              : tfrecord::MessageTally::Type{"bytes"};
}

}  // namespace

void RawMessages::take(std::span<const std::byte> record, bool is_example) {
  if (is_example || !image_file_kind(record).empty()) return;
  if (!is_message(record)) return void(++malformed_);
  ++messages_;
  take_message(record, tally_.root(), 0);
  tally_.end_record();
}

// NOLINTNEXTLINE(misc-no-recursion): limited by kDeepestGuess
void RawMessages::take_message(std::span<const std::byte> message, FieldTally& tally, int depth) {
  WireCursor fields(message);
  while (const auto field = fields.next()) {
    FieldTally* const found = tally_.find(tally, field->number);
    if (found == nullptr) continue;
    if (found->name.empty()) found->name = fmt::format("{}", field->number);
    tally_.count(*found, *field);
    if (field->is_delimited && !field->bytes.empty()) {
      found->may_be_text = found->may_be_text && is_text(field->bytes);
      found->may_be_message =
          found->may_be_message && depth < kDeepestGuess && is_message(field->bytes);
      if (found->may_be_message) take_message(field->bytes, *found, depth + 1);
    } else if (field->type == WireType::kGroup && depth < kDeepestGuess) {
      take_message(field->bytes, *found, depth + 1);
    }
  }
}

std::optional<MessageContents> RawMessages::result() const {
  if (messages_ == 0) return std::nullopt;
  MessageContents contents = tally_.result(guessed_type);
  contents.malformed = malformed_;
  return contents;
}

}  // namespace precache
