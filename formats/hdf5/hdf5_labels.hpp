// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hdf5/hdf5_objects.hpp"

// Reading labels, keys and names of classes through the library. All of it throws LibraryFailure,
// and needs with_library() around it and the size of the dataset to be known as reasonable.
namespace precache::hdf5 {

/// The known names of labels that may belong to images of a name, best first: beside `x_test` it is
/// `y_test` and never `y_train`.
[[nodiscard]] std::vector<std::string> label_names_for(std::string_view images);

/// Whether type and shape are those of labels: numbers or strings, one for each sample, or a row of
/// numbers in which the place of a one among zeros is the label. What
/// lists_classes() holds no labels.
[[nodiscard]] bool may_be_labels(const Dataset& dataset, std::uint64_t samples);

/// Whether it holds strings and is called as lists of all classes are.
[[nodiscard]] bool lists_classes(const Dataset& dataset);

/// As in "'labels' (50 x 5 of float32)".
[[nodiscard]] std::string describe(const Dataset& dataset);

/// Datasets of integers, one for each sample, whose names do not say what they are; empty if there
/// are none.
[[nodiscard]] std::string other_integers(hid_t file, std::uint64_t samples);

/// Integers, truth values, floats that are whole numbers, or the places of ones; none if the
/// dataset holds anything else. REQUIRES: may_be_labels().
[[nodiscard]] std::vector<std::int64_t> read_numbers(const Dataset& dataset, std::uint64_t samples);

/// Strings on one axis; none if the dataset holds anything else, or all are wider than `longest`.
/// Those of various lengths are cut there.
[[nodiscard]] std::vector<std::string> read_texts(const Dataset& dataset, std::size_t longest);

/// Strings of the fixed width of `type` without what fills them up.
[[nodiscard]] std::vector<std::string> cut_texts(hid_t type, std::string_view texts);

/// The class names that precache files have in an attribute of their labels; none if no dataset
/// of labels in `group` has it, or it holds more than `most_bytes`.
[[nodiscard]] std::vector<std::string> class_names_of(hid_t file, const std::string& group,
                                                      std::string_view images,
                                                      std::uint64_t most_bytes);

}  // namespace precache::hdf5
