// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace precache::hdf5 {

/// What the helper process does: reads the file that the words of a HelperRequest name, writes the
/// answer to standard output, and ends, without what the HDF5 library does at exit.
[[noreturn]] void serve_helper_request(std::span<char* const> words);

}  // namespace precache::hdf5
