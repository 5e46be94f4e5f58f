// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>

#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include "precache/formats/error.hpp"
#include "reader/python/binding.hpp"

namespace precache::python {
namespace {

/// Raises the exception of `_errors.py` for the C++ exception `kind`.
void raise(const char* kind, const std::string& message, const std::string& hint,
           nb::object path = nb::none(), nb::object offset = nb::none(),
           nb::object code = nb::none()) {
  const nb::object exception =
      nb::module_::import_("precache._errors")
          .attr("make_error")(kind, text_of(message), text_of(hint), path, offset, code);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

nb::object path_of(const std::filesystem::path& path) {
  return nb::steal(PyUnicode_DecodeFSDefault(path.c_str()));
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const InvalidArgument& error) {
    raise("InvalidArgument", error.what(), error.hint());
  } catch (const IoError& error) {
    raise("IoError", error.what(), error.hint(), path_of(error.path()), nb::none(),
          nb::int_(error.code()));
  } catch (const CorruptData& error) {
    raise("CorruptData", error.what(), error.hint(), path_of(error.path()),
          nb::int_(error.offset()));
  } catch (const Unsupported& error) {
    raise("Unsupported", error.what(), error.hint());
  } catch (const DeviceError& error) {
    raise("DeviceError", error.what(), error.hint());
  } catch (const std::filesystem::filesystem_error& error) {
    raise("IoError", error.what(), "", path_of(error.path1()), nb::none(),
          nb::int_(error.code().value()));
  } catch (const std::system_error& error) {  // only std::thread throws it here
    raise("IoError", std::string("cannot start a thread: ") + error.what(),
          "Use fewer threads, or allow the process more of them or more memory.", nb::none(),
          nb::none(), nb::int_(error.code().value()));
  }
}

}  // namespace

void add_errors() { nb::register_exception_translator(translate); }

}  // namespace precache::python
