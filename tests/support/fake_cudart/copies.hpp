// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "state.hpp"

namespace fake_cudart {

/// One end of a copy. Without a region: pageable memory of the host.
struct Place {
  Address address = 0;
  RegionPtr region;

  [[nodiscard]] bool on_device() const { return region && region->kind == RegionKind::kDevice; }
};

struct Piece {
  Place to;
  Place from;
  std::size_t size = 0;
  bool from_call_on = false;          ///< the source may be read before the copy's turn
  bool read_at_call = false;          ///< the source is read before the call returns
  std::vector<std::byte> staged;      ///< the bytes read at the call
  std::optional<std::size_t> digest;  ///< of the source at the call
};

/// The place of `size` bytes at `pointer`, which must be alive, and on the device of `stream` or in
/// host memory. None after a fault.
std::optional<Place> find_place(Call& call, const Stream& stream, const void* pointer,
                                std::size_t size, bool write);

/// Queues the pieces as one operation. A source that is pageable or to be read at the call is read
/// now; with a pageable destination it waits until the copy is done, as CUDA does.
OpPtr queue_copy(Call& call, const StreamPtr& stream, std::vector<Piece> pieces);

}  // namespace fake_cudart
