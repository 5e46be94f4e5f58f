// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "precache/reader/augmentation.hpp"
#include "reader/python/binding.hpp"

namespace precache::python {

/// The augmentation of a list of (name, fields), as `_native.py` makes it. Throws InvalidArgument
/// for an unknown name or word, nb::cast_error for a field of another type.
[[nodiscard]] Augmentation augmentation_of(const nb::list& named);

/// The draws of one sample by operation, in order: numbers, truth values, words and tuples.
[[nodiscard]] nb::dict dict_of(const std::vector<OperationDraw>& draws);

}  // namespace precache::python
