// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace precache {

/// The beginning of what a gzip or zlib file holds.
struct InflatedHead {
  std::vector<std::byte> bytes;
  bool is_whole = false;    // there is no more, within the limit or in further members
  bool is_damaged = false;  // it breaks its specification, or ends too early
};

/// At most `limit` bytes of the first member. One that is damaged gives what stood before that.
[[nodiscard]] InflatedHead inflate_head(std::span<const std::byte> file, std::size_t limit);

}  // namespace precache
