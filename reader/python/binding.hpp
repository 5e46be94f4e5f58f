// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "precache/formats/tensor_spec.hpp"

// The parts of the module `_reader`. It hands out memory as arrays of bytes and labels; what the
// bytes mean is put on them by `_arrays.py`, as numpy can do with types that nanobind cannot name.
namespace precache::python {

namespace nb = nanobind;

/// Tensors as bytes, one a row. Whoever has an array keeps what it lies in.
using ByteRows = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<2>>;
using ConstByteRows = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<2>>;
using Labels = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

/// dtype, layout and shape, as `Spec` of the package takes them.
[[nodiscard]] nb::tuple spec_tuple(const TensorSpec& spec);

/// Keys, class names and messages with paths in them are UTF-8 in whatever locale, or meant to be:
/// other bytes are kept as Python keeps them in file names.
[[nodiscard]] nb::object text_of(std::string_view bytes);

/// Lets other threads of Python run while it lives.
///
/// Unlike nb::gil_scoped_release it stands the end of the interpreter. Python before 3.14 ends a
/// daemon thread that comes back then by pthread_exit(), which unwinds the stack as an exception
/// does: no function of nanobind lets that pass, and the process would abort. Such a thread sleeps
/// instead until the process is gone.
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

/// Calls while other threads of Python run, and returns what the call does.
template <typename Call>
auto without_gil(const Call& call) {
  const WithoutGil released;
  return call();
}

void add_errors();
void add_dataset(nb::module_& module);
void add_loader(nb::module_& module);
void add_device_loader(nb::module_& module);

}  // namespace precache::python
