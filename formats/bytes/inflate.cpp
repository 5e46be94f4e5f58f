// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/inflate.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::size_t kPiece = 256 << 10;  // small enough to stay in the cache

/// zlib only reads its input, although the pointer is not const.
std::uint8_t* as_input(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(bytes.data()));
}

void end_and_delete(z_stream* stream) {
  inflateEnd(stream);
  delete stream;
}

}  // namespace

// zlib, although ISA-L is faster: fed byte by byte, ISA-L accepts files that need a dictionary.
Inflater::Inflater(std::filesystem::path path)
    : path_(std::move(path)), stream_(new z_stream{}, end_and_delete), piece_(kPiece) {
  // 32: detect gzip or zlib from the header.
  if (inflateInit2(stream_.get(), MAX_WBITS + 32) != Z_OK) throw std::bad_alloc();
}

Inflater::~Inflater() = default;

void Inflater::fail(const std::string& reason) const { throw CorruptData(path_, offset_, reason); }

void Inflater::begin_member(std::byte first) {
  if (has_zeros_ || (members_ != 0 && first != std::byte(kGzipMagic[0]))) {
    fail("there is more data after the compressed stream");
  }
  inflateReset(stream_.get());
  is_in_member_ = true;
  ++members_;
}

std::size_t Inflater::unpack_member(std::span<const std::byte> bytes, const Append& append) {
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), UINT32_MAX));
  stream_->next_in = as_input(bytes);
  stream_->avail_in = static_cast<uInt>(bytes.size());
  int result = Z_OK;
  do {  // a full piece may leave data in the stream, which must come out before the end
    stream_->next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_->avail_out = static_cast<uInt>(piece_.size());
    result = inflate(stream_.get(), Z_NO_FLUSH);
    const std::size_t made = piece_.size() - stream_->avail_out;
    if (made != 0) append(std::span(piece_).first(made));
  } while (result == Z_OK && stream_->avail_out == 0);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  is_in_member_ = result != Z_STREAM_END;
  if (is_in_member_ && result != Z_OK && result != Z_BUF_ERROR) {
    fail(fmt::format("the compressed data is damaged ({})",
                     stream_->msg == nullptr ? "it needs a dictionary" : stream_->msg));
  }
  return bytes.size() - stream_->avail_in;
}

void Inflater::feed(std::span<const std::byte> bytes, const Append& append) {
  while (!bytes.empty()) {
    std::size_t taken = 0;
    if (!is_in_member_ && members_ != 0 && bytes[0] == std::byte{0}) {
      // Tapes are padded with zeros.
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
  if (is_in_member_ || members_ == 0) fail("the compressed data ends too early");
}

InflatedHead inflate_head(std::span<const std::byte> file, std::size_t limit) {
  constexpr std::size_t kFeed = 16 << 10;  // which unpacks to 16 MB at most
  InflatedHead head;
  bool is_cut = false;
  const auto append = [&](std::span<const std::byte> bytes) {
    const auto kept = bytes.first(std::min(bytes.size(), limit - head.bytes.size()));
    head.bytes.insert(head.bytes.end(), kept.begin(), kept.end());
    is_cut = is_cut || kept.size() < bytes.size();
  };
  Inflater inflater({});
  try {
    while (!file.empty() && !is_cut) {
      const auto next = file.first(std::min(kFeed, file.size()));
      inflater.feed(next, append);
      file = file.subspan(next.size());
    }
    if (!is_cut) inflater.finish();
    head.is_whole = !is_cut;
  } catch (const CorruptData&) {
    head.is_damaged = true;
  }
  return head;
}

}  // namespace precache
