// SPDX-License-Identifier: Apache-2.0
// The runtime's copies and memset.
#include <algorithm>
#include <cstring>
#include <utility>

#include "copies.hpp"

using namespace fake_cudart;

namespace {

/// CUDA lets copies use a stream of a device that is not current; here it is a fault.
StreamPtr find_copy_stream(Call& call, cudaStream_t handle) {
  StreamPtr stream = find_stream(call, handle);
  if (!stream || stream->device == call.device()) return stream;
  call.fault(FaultKind::kWrongDevice,
             "the stream is of device " + std::to_string(stream->device) + ", the current one is " +
                 std::to_string(call.device()),
             cudaErrorInvalidResourceHandle);
  return nullptr;
}

bool fits(cudaMemcpyKind kind, const Piece& piece) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !piece.from.on_device() && !piece.to.on_device();
    case cudaMemcpyHostToDevice:
      return !piece.from.on_device() && piece.to.on_device();
    case cudaMemcpyDeviceToHost:
      return piece.from.on_device() && !piece.to.on_device();
    case cudaMemcpyDeviceToDevice:
      return piece.from.on_device() && piece.to.on_device();
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

/// Both ends of a copy that takes `from_size` and `to_size` bytes from begin to end.
std::optional<Piece> find_ends(Call& call, const Stream& stream, void* to, std::size_t to_size,
                               const void* from, std::size_t from_size, cudaMemcpyKind kind) {
  const auto source = find_place(call, stream, from, from_size, false);
  if (!source) return std::nullopt;
  const auto destination = find_place(call, stream, to, to_size, true);
  if (!destination) return std::nullopt;
  Piece piece;
  piece.from = *source;
  piece.to = *destination;
  piece.size = from_size;
  if (fits(kind, piece)) return piece;
  call.fault(FaultKind::kBadPointer, "the pointers do not fit the kind of copy",
             cudaErrorInvalidMemcpyDirection);
  return std::nullopt;
}

bool pinned_or_device(Call& call, const Piece& piece) {
  if (piece.from.region && piece.to.region) return true;
  call.fault(FaultKind::kUnregistered,
             std::string("the ") + (piece.from.region ? "destination" : "source") +
                 " is not pinned or registered",
             cudaErrorInvalidValue);
  return false;
}

/// Queues a copy of one range, unless there is a fault.
OpPtr copy(Call& call, void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
           cudaStream_t handle) {
  const StreamPtr stream = find_copy_stream(call, handle);
  if (!stream || size == 0) return nullptr;
  const auto piece = find_ends(call, *stream, to, size, from, size, kind);
  return piece ? queue_copy(call, stream, {*piece}) : nullptr;
}

bool bad_pitch(Call& call, const char* which, std::size_t pitch, std::size_t width) {
  if (pitch >= width && pitch <= static_cast<std::size_t>(attribute_of(cudaDevAttrMaxPitch)))
    return false;
  call.fault(FaultKind::kBadPitch,
             std::string("the ") + which + " pitch is " + std::to_string(pitch) + ", the width " +
                 std::to_string(width),
             cudaErrorInvalidPitchValue);
  return true;
}

/// One piece for each row; one piece for all if rows have no gaps on both sides.
std::vector<Piece> rows_of(const Piece& whole, std::size_t to_pitch, std::size_t from_pitch,
                           std::size_t width, std::size_t height) {
  const bool close = to_pitch == width && from_pitch == width;
  std::vector<Piece> rows(close ? 1 : height, whole);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row].to.address += row * to_pitch;
    rows[row].from.address += row * from_pitch;
    rows[row].size = close ? width * height : width;
  }
  return rows;
}

bool bad_attributes(Call& call, std::size_t count, const cudaMemcpyAttributes* attributes,
                    const std::size_t* first_copies, std::size_t attribute_count) {
  bool good = attributes != nullptr && first_copies != nullptr && attribute_count > 0 &&
              attribute_count <= count && first_copies[0] == 0;
  for (std::size_t i = 0; good && i < attribute_count; ++i) {
    const auto order = attributes[i].srcAccessOrder;
    good = first_copies[i] < count && (i == 0 || first_copies[i] > first_copies[i - 1]) &&
           (order == cudaMemcpySrcAccessOrderStream ||
            order == cudaMemcpySrcAccessOrderDuringApiCall || order == cudaMemcpySrcAccessOrderAny);
  }
  if (!good)
    call.fault(FaultKind::kBadArgument,
               "every copy needs attributes with a source access order, given in rising order",
               cudaErrorInvalidValue);
  return !good;
}

bool destinations_overlap(const std::vector<Piece>& pieces) {
  std::vector<std::pair<Address, Address>> ranges;
  for (const Piece& piece : pieces)
    ranges.emplace_back(piece.to.address, piece.to.address + piece.size);
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) return true;
  return false;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  Call call("cudaMemcpyAsync");
  if (call.refused()) return call.result();
  // CUDA would read it at the call, in pieces, through its own pinned memory.
  if (size != 0 && in_device_range(address_of(to)) && !in_device_range(address_of(from)) &&
      !find_region(address_of(from)))
    add_fault(FaultKind::kUnregistered, call.name(),
              "cudaMemcpyAsync: the source is not pinned or registered");
  copy(call, to, from, size, kind, handle);
  return call.result();
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  Call call("cudaMemcpy");
  if (call.refused()) return call.result();
  const OpPtr op = copy(call, to, from, size, kind, nullptr);
  // CUDA does not wait for copies within devices.
  if (op && !(in_device_range(address_of(to)) && in_device_range(address_of(from))))
    wait_for(call.lock(), op);
  return call.result();
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t handle) {
  Call call("cudaMemcpy2DAsync");
  if (call.refused()) return call.result();
  const StreamPtr stream = find_copy_stream(call, handle);
  if (!stream || bad_pitch(call, "destination", to_pitch, width) ||
      bad_pitch(call, "source", from_pitch, width) || width == 0 || height == 0)
    return call.result();
  const auto whole = find_ends(call, *stream, to, (height - 1) * to_pitch + width, from,
                               (height - 1) * from_pitch + width, kind);
  if (whole && pinned_or_device(call, *whole))
    queue_copy(call, stream, rows_of(*whole, to_pitch, from_pitch, width, height));
  return call.result();
}

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const std::size_t* sizes,
                                 std::size_t count, cudaMemcpyAttributes* attributes,
                                 std::size_t* first_copies, std::size_t attribute_count,
                                 cudaStream_t handle) {
  Call call("cudaMemcpyBatchAsync");
  if (call.refused()) return call.result();
  if (state().settings.driver_version < 12080) return call.result(cudaErrorCallRequiresNewerDriver);
  const StreamPtr stream = find_copy_stream(call, handle);
  if (!stream) return call.result();
  if (stream->legacy)
    return call.fault(FaultKind::kLegacyStream, "a batch cannot go to the legacy default stream",
                      cudaErrorInvalidValue);
  if (bad_attributes(call, count, attributes, first_copies, attribute_count)) return call.result();
  std::vector<Piece> pieces;
  std::size_t attribute = 0;
  for (std::size_t i = 0; i < count; ++i) {
    while (attribute + 1 < attribute_count && first_copies[attribute + 1] <= i) ++attribute;
    if (sizes[i] == 0)
      return call.fault(FaultKind::kBadArgument, "a copy of no bytes", cudaErrorInvalidValue);
    auto piece = find_ends(call, *stream, to[i], sizes[i], from[i], sizes[i], cudaMemcpyDefault);
    if (!piece || !pinned_or_device(call, *piece)) return call.result();
    const auto order = attributes[attribute].srcAccessOrder;
    piece->from_call_on = order == cudaMemcpySrcAccessOrderAny;
    piece->read_at_call = order == cudaMemcpySrcAccessOrderDuringApiCall;
    pieces.push_back(std::move(*piece));
  }
  if (destinations_overlap(pieces))
    add_fault(FaultKind::kRace, call.name(),
              "cudaMemcpyBatchAsync: two copies of a batch, which has no order, write one place");
  queue_copy(call, stream, std::move(pieces));
  return call.result();
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t size, cudaStream_t handle) {
  Call call("cudaMemsetAsync");
  if (call.refused()) return call.result();
  const StreamPtr stream = find_copy_stream(call, handle);
  if (!stream || size == 0) return call.result();
  const auto place = find_place(call, *stream, pointer, size, true);
  if (!place) return call.result();
  if (!place->region)
    return call.fault(FaultKind::kBadPointer, "neither device nor pinned memory",
                      cudaErrorInvalidValue);
  const OpPtr op = new_op(call.name(), *stream);
  record(*place->region, {place->address, place->address + size, op, false}, true);
  op->locked_work = [place = *place, value, size] {
    if (place.region->alive) std::memset(bytes_at(place.address), value, size);
  };
  push(stream, op);
  return call.result();
}

}  // extern "C"
