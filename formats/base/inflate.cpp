// SPDX-License-Identifier: Apache-2.0
#include "formats/base/inflate.hpp"

#include <isa-l.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kPiece = 256 << 10;  // stays in the cache on its way
constexpr std::byte kGzip{0x1f};           // the first byte of a member

/// The library only reads what it is given, whatever its types say.
std::uint8_t* as_input(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(bytes.data()));
}

}  // namespace

Inflater::Inflater(std::filesystem::path path)
    : path_(std::move(path)), state_(std::make_unique<inflate_state>()), piece_(kPiece) {}

Inflater::~Inflater() = default;

void Inflater::fail(const std::string& reason) const { throw CorruptData(path_, offset_, reason); }

void Inflater::begin_member(std::byte first) {
  if (has_zeros_ || (members_ != 0 && first != kGzip)) {
    fail("there is more behind what is compressed");
  }
  isal_inflate_init(state_.get());
  state_->crc_flag = first == kGzip ? ISAL_GZIP : ISAL_ZLIB;
  is_in_member_ = true;
  ++members_;
}

std::size_t Inflater::unpack_member(std::span<const std::byte> bytes, const Append& append) {
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), UINT32_MAX));
  state_->next_in = as_input(bytes);
  state_->avail_in = static_cast<std::uint32_t>(bytes.size());
  bool is_stuck = false;
  do {  // what the state still has when the piece is full must come out before the end
    const std::uint32_t before = state_->avail_in;
    state_->next_out = reinterpret_cast<std::uint8_t*>(piece_.data());
    state_->avail_out = static_cast<std::uint32_t>(piece_.size());
    const int status = isal_inflate(state_.get());
    if (status == ISAL_NEED_DICT) fail("what is compressed needs a dictionary");
    if (status == ISAL_INCORRECT_CHECKSUM) fail("what is compressed has a wrong checksum");
    if (status < 0) fail("what is compressed is broken");
    const std::size_t made = piece_.size() - state_->avail_out;
    if (made != 0) append(std::span(piece_).first(made));
    is_in_member_ = state_->block_state != ISAL_BLOCK_FINISH;
    is_stuck = made == 0 && state_->avail_in == before;
  } while (is_in_member_ && !is_stuck && (state_->avail_in != 0 || state_->avail_out == 0));
  if (is_in_member_ && state_->avail_in != 0) fail("what is compressed is broken");
  // The library reads ahead: whole bytes that it still has at the end of a member are not its.
  const std::size_t ahead =
      is_in_member_ ? 0 : static_cast<std::size_t>(state_->read_in_length) / 8;
  const std::size_t read = bytes.size() - state_->avail_in;
  return read - std::min(ahead, read);
}

void Inflater::feed(std::span<const std::byte> bytes, const Append& append) {
  while (!bytes.empty()) {
    std::size_t taken = 0;
    if (!is_in_member_ && members_ != 0 && bytes[0] == std::byte{0}) {
      // A tape is filled up with zeros.
      const auto is_more = [](std::byte byte) { return byte != std::byte{0}; };
      taken = static_cast<std::size_t>(std::ranges::find_if(bytes, is_more) - bytes.begin());
      has_zeros_ = true;
    } else {
      if (!is_in_member_) begin_member(bytes[0]);
      taken = unpack_member(bytes, append);
    }
    offset_ += taken;
    bytes = bytes.subspan(taken);
  }
}

void Inflater::finish() const {
  if (is_in_member_ || members_ == 0) fail("what is compressed ends too early");
}

InflatedHead inflate_head(std::span<const std::byte> file, std::size_t limit) {
  constexpr std::size_t kGrowth = 256 << 10;
  const bool is_gzip = !file.empty() && file[0] == kGzip;
  const auto state = std::make_unique<inflate_state>();  // of some 80 KB
  isal_inflate_init(state.get());
  state->crc_flag = is_gzip ? ISAL_GZIP : ISAL_ZLIB;
  state->next_in = as_input(file);
  state->avail_in = static_cast<std::uint32_t>(std::min<std::size_t>(file.size(), UINT32_MAX));
  InflatedHead head;
  bool is_finished = false;
  while (head.bytes.size() < limit && !is_finished && !head.is_damaged) {
    const std::size_t size = head.bytes.size();
    head.bytes.resize(std::min(limit, size + kGrowth));
    state->next_out = reinterpret_cast<std::uint8_t*>(head.bytes.data() + size);
    state->avail_out = static_cast<std::uint32_t>(head.bytes.size() - size);
    const int status = isal_inflate(state.get());
    head.bytes.resize(head.bytes.size() - state->avail_out);
    is_finished = status == ISAL_DECOMP_OK && state->block_state == ISAL_BLOCK_FINISH;
    const bool is_starved = state->avail_in == 0 && head.bytes.size() == size;
    head.is_damaged = !is_finished && (status < 0 || is_starved);
  }
  head.is_whole = is_finished && state->avail_in == 0;
  return head;
}

}  // namespace precache
