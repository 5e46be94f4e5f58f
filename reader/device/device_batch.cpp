// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "precache/formats/error.hpp"
#include "reader/device/device_lease.hpp"
#include "reader/device/dlpack.hpp"

namespace precache {

std::string_view name(DevicePath path) {
  switch (path) {
    case DevicePath::kAuto:
      return "auto";
    case DevicePath::kStaged:
      return "staged";
    case DevicePath::kStrided:
      return "strided";
    case DevicePath::kGather:
      return "gather";
  }
  return "?";
}

DevicePath parse_device_path(std::string_view text) {
  for (const DevicePath path :
       {DevicePath::kAuto, DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather}) {
    if (name(path) == text) return path;
  }
  throw InvalidArgument("`device_path` must be one of auto, staged, strided, gather; got '" +
                        std::string(text) + "'");
}

/// A batch's place, shared by the batch and the tensors that were made of it.
struct DeviceBatch::Holder {
  std::unique_ptr<DeviceLease> lease;  // none: released
  std::vector<CUstream_st*> streams;   // that tensors were handed to, each once

  explicit Holder(std::unique_ptr<DeviceLease> place) : lease(std::move(place)) {}
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  void note(CUstream_st* stream) {
    if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
  }
  ~Holder() {
    if (lease == nullptr || streams.empty()) return;
    try {
      lease->release(streams);
    } catch (...) {
      // A destructor cannot throw. The lease, which was not released, waits for the device instead;
      // if that fails, it tells the loader, whose next call throws.
    }
  }
};

namespace {

DLDataType dlpack_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_bytes(dtype));
  switch (dtype) {
    case DType::kUint8:
      return {dlpack::kUint, bits, 1};
    case DType::kBfloat16:
      return {dlpack::kBfloat, bits, 1};
    case DType::kFloat16:
    case DType::kFloat32:
      break;
  }
  return {dlpack::kFloat, bits, 1};
}

/// What a tensor that was handed out points to.
template <typename Managed>
struct Export {
  Managed managed{};
  std::array<std::int64_t, 4> shape{};
  std::array<std::int64_t, 4> strides{};
  std::shared_ptr<void> holder;
};

}  // namespace

DeviceBatch::DeviceBatch(Parts parts, std::unique_ptr<DeviceLease> lease)
    : parts_(std::move(parts)), holder_(std::make_shared<Holder>(std::move(lease))) {}
DeviceBatch::DeviceBatch(DeviceBatch&&) noexcept = default;
DeviceBatch& DeviceBatch::operator=(DeviceBatch&&) noexcept = default;
DeviceBatch::~DeviceBatch() = default;

void* DeviceBatch::images_of(DType asked) const {
  detail::check_elements(parts_.spec, asked, nullptr, 0);
  return parts_.images;
}

DeviceBatch::Holder& DeviceBatch::holder() const {
  if (holder_ == nullptr || holder_->lease == nullptr) {
    throw InvalidArgument("the batch was released: its memory may hold another one by now");
  }
  return *holder_;
}

void DeviceBatch::wait_on(CUstream_st* stream) const { holder().lease->wait_on(stream); }

void DeviceBatch::wait() const { holder().lease->wait(); }

void DeviceBatch::release(CUstream_st* stream) {
  Holder& place = holder();
  if (holder_.use_count() != 1) {
    throw InvalidArgument("a tensor of the batch is still held, so it cannot be released",
                          "It is released when the last of its tensors is.");
  }
  const std::unique_ptr<DeviceLease> lease = std::move(place.lease);
  place.note(stream);
  lease->release(place.streams);
}

template <typename Managed>
Managed* DeviceBatch::make_dlpack(Part part, CUstream_st* stream) const {
  Holder& place = holder();
  auto exported = std::make_unique<Export<Managed>>();
  exported->holder = holder_;
  place.lease->wait_on(stream);
  place.note(stream);  // last of what may fail: streams that have no tensor are not waited for
  exported->shape[0] = static_cast<std::int64_t>(size());
  const bool images = part == Part::kImages;
  if (images) std::copy_n(spec().shape().begin(), 3, exported->shape.begin() + 1);
  const int axes = images ? 4 : 1;
  std::int64_t stride = 1;
  for (int i = axes - 1; i >= 0; --i) {
    const auto axis = static_cast<std::size_t>(i);
    exported->strides[axis] = stride;
    stride *= exported->shape[axis];
  }
  DLTensor& tensor = exported->managed.dl_tensor;
  tensor.data = images ? parts_.images : parts_.labels;
  tensor.device = {dlpack::kCuda, device()};
  tensor.ndim = axes;
  tensor.dtype = images ? dlpack_type(spec().dtype) : DLDataType{dlpack::kInt, 64, 1};
  tensor.shape = exported->shape.data();
  tensor.strides = exported->strides.data();
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    exported->managed.version = {1, 0};
  }
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](Managed* self) {
    delete static_cast<Export<Managed>*>(self->manager_ctx);
  };
  return &exported.release()->managed;
}

DLManagedTensor* DeviceBatch::to_dlpack(Part part, CUstream_st* stream) const {
  return make_dlpack<DLManagedTensor>(part, stream);
}

DLManagedTensorVersioned* DeviceBatch::to_dlpack_versioned(Part part, CUstream_st* stream) const {
  return make_dlpack<DLManagedTensorVersioned>(part, stream);
}

}  // namespace precache
