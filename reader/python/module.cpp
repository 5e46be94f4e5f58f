// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "formats/shard/file_names.hpp"
#include "formats/tar/ustar.hpp"
#include "precache/version.hpp"
#include "reader/python/binding.hpp"

namespace precache::python {

nb::tuple spec_tuple(const TensorSpec& spec) {
  const auto [first, second, third] = spec.shape();
  return nb::make_tuple(name(spec.dtype), name(spec.layout), nb::make_tuple(first, second, third));
}

nb::object text_of(std::string_view bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), size, "surrogateescape"));
}

}  // namespace precache::python

NB_MODULE(_reader, module) {
  nanobind::set_leak_warnings(false);  // arrays may outlive the interpreter
  module.doc() = "Implementation of the package precache; import that instead.";
  module.attr("version") = nanobind::str(precache::kVersion.data(), precache::kVersion.size());
  module.def("has_image_ending", [](nanobind::bytes name) {
    return precache::has_image_extension({name.c_str(), name.size()});
  });
  module.def("shortened", &precache::ustar::shortened);
  precache::python::add_errors();
  precache::python::add_dataset(module);
  precache::python::add_loader(module);
  precache::python::add_device_loader(module);
}
