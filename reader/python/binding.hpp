// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "precache/formats/named_column.hpp"
#include "precache/formats/tensor_spec.hpp"

// The module `_reader` returns arrays of bytes and of labels. `_arrays.py` gives the bytes their
// dtype and shape, because numpy has types that nanobind cannot name.
namespace precache::python {

namespace nb = nanobind;

/// Tensors as bytes, one in each row. An array keeps its memory alive.
using ByteRows = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<2>>;
using ConstByteRows = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<2>>;
/// Numbers of samples that Python gives.
using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

/// dtype, layout and shape, the arguments of the package's `Spec`.
[[nodiscard]] nb::tuple spec_tuple(const TensorSpec& spec);

/// Decodes keys, class names and messages as UTF-8 in any locale. Other bytes become surrogates, as
/// in Python's file names.
[[nodiscard]] nb::object text_of(std::string_view bytes);

/// Releases the GIL during its lifetime.
///
/// Unlike nb::gil_scoped_release it survives the end of the interpreter. Python before 3.14 then
/// ends a daemon thread that wants the GIL back with pthread_exit(), which unwinds the stack like
/// an exception. Functions of nanobind do not let it pass, so the process would abort. Here, such a
/// thread sleeps until the process has ended.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      for (;;) ::pause();
    }
  }

 private:
  PyThreadState* state_;
};

/// The result of a call that runs without the GIL.
template <typename Call>
auto without_gil(const Call& call) {
  const WithoutGil released;
  return call();
}

/// Deletes `kept` when the array that it owns is deleted.
template <typename Kept>
nb::capsule owner_of(std::unique_ptr<Kept> kept) {
  Kept* const raw = kept.get();
  nb::capsule capsule(raw, [](void* pointer) noexcept { delete static_cast<Kept*>(pointer); });
  (void)kept.release();
  return capsule;
}

[[nodiscard]] inline Labels labels_array(std::vector<std::int64_t> labels) {
  auto kept = std::make_unique<std::vector<std::int64_t>>(std::move(labels));
  std::int64_t* const data = kept->data();
  const std::size_t count = kept->size();
  return {data, {count}, owner_of(std::move(kept))};
}

/// Names, types, shapes and value names, the arguments of the package's `Column`.
[[nodiscard]] nb::list column_tuples(std::span<const NamedColumn> columns);
[[nodiscard]] nb::dlpack::dtype dtype_of(ValueType type);

void add_errors();
void add_dataset(nb::module_& module);
void add_loader(nb::module_& module);
void add_device_loader(nb::module_& module);

}  // namespace precache::python
