// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hdf5/hdf5_objects.hpp"

// Reading labels, keys and names of classes through the library. All of it throws LibraryFailure,
// and wants the LibraryLock to be held and the size of the dataset to be known as reasonable.
namespace precache::hdf5 {

/// Integers, or floats that are whole numbers; none if the dataset holds anything else.
[[nodiscard]] std::vector<std::int64_t> read_numbers(const Dataset& dataset);

/// Strings on one axis; none if the dataset holds anything else, or all are wider than `longest`.
/// Those of various lengths are cut there.
[[nodiscard]] std::vector<std::string> read_texts(const Dataset& dataset, std::size_t longest);

/// Strings of fixed width without what fills them up.
[[nodiscard]] std::vector<std::string> cut_texts(const Dataset& dataset, std::string_view texts);

}  // namespace precache::hdf5
