// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "precache/formats/error.hpp"
#include "reader/device/device_lease.hpp"
#include "reader/device/dlpack.hpp"
#include "reader/device/sample_list.hpp"
#include "reader/loader/option_checks.hpp"

namespace precache {

namespace {

constexpr std::array<std::string_view, 5> kPathNames{"auto", "staged", "strided", "gather",
                                                     "resident"};

DLDataType dlpack_type(DType dtype) {
  const std::uint8_t code = dtype == DType::kUint8      ? dlpack::kUint
                            : dtype == DType::kBfloat16 ? dlpack::kBfloat
                                                        : dlpack::kFloat;
  return {code, static_cast<std::uint8_t>(8 * size_bytes(dtype)), 1};
}

/// The memory that an exported tensor points to.
template <typename Managed>
struct Export {
  Managed managed{};
  std::array<std::int64_t, 4> shape{};
  std::array<std::int64_t, 4> strides{};
  std::shared_ptr<void> lease;
};

}  // namespace

std::string_view name(DevicePath path) { return kPathNames.at(static_cast<std::size_t>(path)); }

DevicePath parse_device_path(std::string_view text) {
  return parse_name<DevicePath>(text, kPathNames, "device_path");
}

void* DeviceBatch::images_of(DType asked) const {
  detail::check_elements(parts_.spec, asked, nullptr, 0);
  return parts_.images;
}

DeviceLease& DeviceBatch::lease() const {
  if (lease_ == nullptr) {
    throw InvalidArgument("the batch was released, so its memory may hold another batch");
  }
  return *lease_;
}

std::span<const std::uint64_t> DeviceBatch::samples() const& { return parts_.samples->get(); }

void DeviceBatch::wait_on(CUstream_st* stream) const { lease().wait_on(stream); }
void DeviceBatch::wait() const { lease().wait(); }

void DeviceBatch::release(CUstream_st* stream) {
  (void)lease();
  if (lease_.use_count() != 1) {
    throw InvalidArgument("a tensor of the batch is still held, so it cannot be released",
                          "The batch is released with the last of its tensors.");
  }
  const std::shared_ptr<DeviceLease> ending = std::move(lease_);
  ending->note(stream);
  ending->release();
}

template <typename Managed>
Managed* DeviceBatch::make_dlpack(Part part, CUstream_st* stream, std::size_t view) const {
  lease().wait_on(stream);
  auto exported = std::make_unique<Export<Managed>>();
  exported->lease = lease_;
  lease().note(stream);  // after all that may fail: a stream without a tensor is not waited for
  exported->shape[0] = static_cast<std::int64_t>(size());
  const bool images = part == Part::kImages;
  const TensorSpec spec = view_spec(view);
  if (images) std::copy_n(spec.shape().begin(), 3, exported->shape.begin() + 1);
  const int axes = images ? 4 : 1;
  std::int64_t stride = 1;
  for (int i = axes - 1; i >= 0; --i) {
    const auto axis = static_cast<std::size_t>(i);
    exported->strides[axis] = stride;
    stride *= exported->shape[axis];
  }
  DLTensor& tensor = exported->managed.dl_tensor;
  tensor.data = images ? view_images(view) : parts_.labels;
  tensor.device = {dlpack::kCuda, device()};
  tensor.ndim = axes;
  tensor.dtype = images ? dlpack_type(spec.dtype) : DLDataType{dlpack::kInt, 64, 1};
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

DLManagedTensor* DeviceBatch::to_dlpack(Part part, CUstream_st* stream, std::size_t view) const {
  return make_dlpack<DLManagedTensor>(part, stream, view);
}

DLManagedTensorVersioned* DeviceBatch::to_dlpack_versioned(Part part, CUstream_st* stream,
                                                           std::size_t view) const {
  return make_dlpack<DLManagedTensorVersioned>(part, stream, view);
}

}  // namespace precache
