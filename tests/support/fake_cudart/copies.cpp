// SPDX-License-Identifier: Apache-2.0
#include "copies.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

namespace fake_cudart {

namespace {

std::size_t digest_of(const Place& place, std::size_t size) {
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(bytes_at(place.address)), size});
}

/// True if only the host may change the source before the copy runs.
bool only_host_writes(const Op& op, const Piece& piece) {
  if (!piece.from.region || piece.from.on_device()) return false;
  for (const OpPtr& body : state().pending_bodies)
    if (op.clock.at(body->actor) >= body->step) return false;
  return !write_pending(*piece.from.region, piece.from.address, piece.from.address + piece.size);
}

void prepare(const Op& op, Piece& piece) {
  if (!piece.from.region || piece.read_at_call) {
    const std::byte* const source = bytes_at(piece.from.address);
    piece.staged.assign(source, source + piece.size);
  } else if (only_host_writes(op, piece)) {
    piece.digest = digest_of(piece.from, piece.size);
  }
}

void record_piece(const OpPtr& op, const Piece& piece) {
  if (piece.from.region && piece.staged.empty())
    record(*piece.from.region,
           {piece.from.address, piece.from.address + piece.size, op, piece.from_call_on}, false);
  if (piece.from.region && piece.read_at_call)
    record_host(op->call, *piece.from.region, piece.from.address, piece.from.address + piece.size,
                false);
  if (piece.to.region)
    record(*piece.to.region, {piece.to.address, piece.to.address + piece.size, op, false}, true);
}

bool usable(const Op& op, const Place& place, std::size_t size) {
  if (!place.region) return true;
  if (!place.region->alive) return false;  // freeing it too early was already reported
  if (place.region->kind != RegionKind::kRegistered || is_mapped(place.address, size)) return true;
  add_fault(FaultKind::kFreed, op.call,
            std::string(op.call) + " uses a range that was unmapped while it was registered");
  return false;
}

void run_piece(const Op& op, const Piece& piece) {
  const bool from_staged = !piece.staged.empty();
  if (!usable(op, piece.to, piece.size)) return;
  if (!from_staged && !usable(op, piece.from, piece.size)) return;
  if (piece.digest && *piece.digest != digest_of(piece.from, piece.size))
    add_fault(FaultKind::kSourceChanged, op.call,
              std::string(op.call) + " in stream " + std::to_string(op.actor) + ": its source in " +
                  describe(*piece.from.region) + " was written after the call and before the copy");
  std::memmove(bytes_at(piece.to.address),
               from_staged ? piece.staged.data() : bytes_at(piece.from.address), piece.size);
}

}  // namespace

std::optional<Place> find_place(Call& call, const Stream& stream, const void* pointer,
                                std::size_t size, bool write) {
  const Address begin = address_of(pointer);
  const char* const end_of_copy = write ? "destination" : "source";
  const auto refuse = [&](FaultKind kind, const std::string& text) -> std::optional<Place> {
    call.fault(kind, std::string("the ") + end_of_copy + " " + text, cudaErrorInvalidValue);
    return std::nullopt;
  };
  if (pointer == nullptr) return refuse(FaultKind::kBadPointer, "is null");
  Place place{begin, find_region(begin)};
  if (!place.region) {
    const auto next = state().regions.lower_bound(begin);
    if (in_device_range(begin) ||
        (next != state().regions.end() && next->second->alive && next->first - begin < size))
      return refuse(FaultKind::kOutOfBounds, "begins outside of the memory that it reaches");
    return place;
  }
  const Region& region = *place.region;
  if (!region.alive) return refuse(FaultKind::kFreed, "is " + describe(region));
  if (size > region.end() - begin)
    return refuse(FaultKind::kOutOfBounds, "runs " + std::to_string(size - (region.end() - begin)) +
                                               " bytes past the end of " + describe(region));
  if (write && !region.writable)
    return refuse(FaultKind::kBadPointer, "is registered as read-only");
  if (place.on_device() && region.device != stream.device)
    return refuse(FaultKind::kWrongDevice, "is " + describe(region) + ", the stream of device " +
                                               std::to_string(stream.device));
  return place;
}

OpPtr queue_copy(Call& call, const StreamPtr& stream, std::vector<Piece> pieces) {
  const OpPtr op = new_op(call.name(), *stream);
  const bool to_pageable = std::any_of(pieces.begin(), pieces.end(),
                                       [](const Piece& piece) { return !piece.to.region; });
  for (Piece& piece : pieces) {
    prepare(*op, piece);
    record_piece(op, piece);
  }
  std::shuffle(pieces.begin(), pieces.end(), stream->random);  // a batch has no order
  op->locked_work = [op = op.get(), pieces = std::move(pieces)] {
    for (const Piece& piece : pieces) run_piece(*op, piece);
  };
  push(stream, op);
  if (to_pageable) wait_for(call.lock(), op);
  return op;
}

}  // namespace fake_cudart
