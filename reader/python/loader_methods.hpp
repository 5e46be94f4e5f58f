// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "precache/reader/loader.hpp"
#include "reader/python/augmentation_binding.hpp"
#include "reader/python/binding.hpp"

namespace precache::python {

[[nodiscard]] inline double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// A loader whose destructor releases the GIL: it waits for its threads, and these may wait minutes
/// for a slow disk.
///
/// The last reference destroys it, so no other thread is in one of its calls then.
template <typename AnyLoader>
class Held : public AnyLoader {
 public:
  using AnyLoader::AnyLoader;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    const WithoutGil released;
    const AnyLoader ending(std::move(static_cast<AnyLoader&>(*this)));
  }
};

/// The result of `stats()` in the package.
[[nodiscard]] nb::dict stats_dict(const LoaderStats& stats);

/// Waits for the next batch, which may take minutes on a slow disk, and checks for Ctrl-C
/// meanwhile.
template <typename AnyLoader>
auto next_batch(AnyLoader& loader) {
  constexpr std::chrono::milliseconds kPatience{100};
  for (;;) {
    {
      const WithoutGil released;
      if (loader.wait_for(kPatience)) return loader.next();
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

/// Binds the methods that Loader and DeviceLoader share.
template <typename AnyLoader>
void add_loader_methods(nb::class_<AnyLoader>& bound) {
  bound.def("next", &next_batch<AnyLoader>)
      .def_prop_ro("batches_per_epoch", &AnyLoader::batches_per_epoch)
      .def_prop_ro("batches_left", &AnyLoader::batches_left)
      .def_prop_ro("epoch", &AnyLoader::epoch)
      .def("set_epoch", &AnyLoader::set_epoch, nb::arg("epoch"), nb::call_guard<WithoutGil>())
      .def("state", [](const AnyLoader& loader) { return loader.state().to_json(); })
      .def(
          "resume",
          [](AnyLoader& loader, const std::string& json) {
            loader.resume(OrderState::from_json(json));
          },
          nb::arg("state"), nb::call_guard<WithoutGil>())
      .def_prop_ro("spec", [](const AnyLoader& loader) { return spec_tuple(loader.spec()); })
      .def_prop_ro("views", &AnyLoader::views)
      .def(
          "view_spec",
          [](const AnyLoader& loader, std::size_t view) {
            return spec_tuple(loader.view_spec(view));
          },
          nb::arg("view"))
      .def(
          "set_size",
          [](AnyLoader& loader, std::uint32_t height, std::uint32_t width, std::size_t view,
             std::optional<std::uint64_t> epoch) {
            return loader.set_size({height, width}, view, epoch);
          },
          nb::arg("height"), nb::arg("width"), nb::arg("view"), nb::arg("epoch").none(),
          nb::call_guard<WithoutGil>())
      .def(
          "draw",
          [](const AnyLoader& loader, std::uint64_t sample, std::uint64_t epoch, std::size_t view,
             std::uint32_t repeat) { return dict_of(loader.draw(sample, epoch, view, repeat)); },
          nb::arg("sample"), nb::arg("epoch"), nb::arg("view"), nb::arg("repeat"))
      .def_prop_ro("warnings", &AnyLoader::warnings);
}

}  // namespace precache::python
