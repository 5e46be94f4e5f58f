// SPDX-License-Identifier: Apache-2.0
#include "formats/base/inflate.hpp"

#include <isa-l.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace precache {

InflatedHead inflate_head(std::span<const std::byte> file, std::size_t limit) {
  constexpr std::size_t kGrowth = 256 << 10;
  const bool is_gzip = file.size() >= 2 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b};
  const auto state = std::make_unique<inflate_state>();  // of some 80 KB
  isal_inflate_init(state.get());
  state->crc_flag = is_gzip ? ISAL_GZIP : ISAL_ZLIB;
  // The library only reads what it is given, whatever its types say.
  state->next_in = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(file.data()));
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
