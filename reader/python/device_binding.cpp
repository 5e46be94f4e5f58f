// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "precache/reader/device_loader.hpp"
#include "reader/device/dlpack.hpp"
#include "reader/python/loader_methods.hpp"

namespace precache::python {
namespace {

/// The name of a capsule identifies its content. A consumer that takes the content renames it.
template <typename Managed>
constexpr const char* kCapsuleName = "dltensor";
template <>
constexpr const char* kCapsuleName<DLManagedTensorVersioned> = "dltensor_versioned";

template <typename Managed>
nb::object capsule_of(Managed* tensor) {
  std::unique_ptr<Managed, void (*)(Managed*)> kept(tensor, tensor->deleter);
  PyObject* const capsule = PyCapsule_New(tensor, kCapsuleName<Managed>, [](PyObject* dying) {
    if (PyCapsule_IsValid(dying, kCapsuleName<Managed>) == 0) return;  // a consumer took the tensor
    auto* const held = static_cast<Managed*>(PyCapsule_GetPointer(dying, kCapsuleName<Managed>));
    held->deleter(held);
  });
  if (capsule == nullptr) throw nb::python_error();
  (void)kept.release();
  return nb::steal(capsule);
}

/// Keeps the GIL, because a batch notes its streams without a lock.
nb::object dlpack(const DeviceBatch& batch, bool labels, std::size_t view, std::uintptr_t stream,
                  bool versioned) {
  const auto part = labels ? DeviceBatch::Part::kLabels : DeviceBatch::Part::kImages;
  auto* const handle =
      reinterpret_cast<CUstream_st*>(stream);  // NOLINT: CUDA's streams are addresses
  return versioned ? capsule_of(batch.to_dlpack_versioned(part, handle, view))
                   : capsule_of(batch.to_dlpack(part, handle, view));
}

void make_loader(Held<DeviceLoader>* self, const Dataset& dataset, const LoaderOptions& options,
                 int device, std::size_t device_batches, const std::string& path,
                 std::uint64_t pin_shards_up_to, std::uint64_t resident_up_to) {
  const DeviceOptions placed{device, device_batches, parse_device_path(path), pin_shards_up_to,
                             resident_up_to};
  const WithoutGil released;
  new (self) Held<DeviceLoader>(dataset, options, placed);
}

nb::dict stats(const Held<DeviceLoader>& loader) {
  const DeviceStats stats = loader.stats();
  nb::dict device;
  device["staged"] = stats.staged;
  device["strided"] = stats.strided;
  device["gathered"] = stats.gathered;
  device["resident"] = stats.resident;
  device["bytes_copied"] = stats.bytes_copied;
  device["bytes_registered"] = stats.bytes_registered;
  device["bytes_resident"] = stats.bytes_resident;
  device["waited"] = seconds_of(stats.device_waited);
  device["reason"] = text_of(stats.reason);
  nb::dict result = stats_dict(stats.host);
  result["batches"] = stats.batches;
  result["device"] = device;
  return result;
}

}  // namespace

void add_device_loader(nb::module_& module) {
  nb::class_<DeviceBatch>(module, "DeviceBatch")
      .def("__len__", &DeviceBatch::size)
      .def_prop_ro("device", &DeviceBatch::device)
      .def_prop_ro("views", &DeviceBatch::views)
      .def("dlpack", &dlpack, nb::arg("labels"), nb::arg("view"), nb::arg("stream"),
           nb::arg("versioned"));

  nb::class_<Held<DeviceLoader>> loader(module, "DeviceLoader");
  loader
      .def("__init__", &make_loader, nb::arg("dataset"), nb::arg("options"), nb::kw_only(),
           nb::arg("device"), nb::arg("device_batches"), nb::arg("path"),
           nb::arg("pin_shards_up_to"), nb::arg("resident_up_to"))
      .def("stats", &stats);
  add_loader_methods(loader);
}

}  // namespace precache::python
