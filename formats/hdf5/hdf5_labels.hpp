// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hdf5/hdf5_objects.hpp"

// Reads labels, keys and class names through the library. All functions throw LibraryFailure, and
// need with_library() around them and a dataset whose size was checked.
namespace precache::hdf5 {

/// Usual names of datasets, in the order in which they are looked for.
inline constexpr std::array kImageNames{
    "images",      "image",       "data",       "x",      "X",      "x_train",
    "X_train",     "train_x",     "x_test",     "X_test", "test_x", "train_images",
    "test_images", "train_set_x", "test_set_x", "x_val",  "X_val",  "val_x",
    "val_images",  "img",         "imgs"};
inline constexpr std::array kLabelNames{
    "labels",      "label",      "y",      "Y",      "y_train",      "Y_train",
    "train_y",     "y_test",     "Y_test", "test_y", "train_labels", "test_labels",
    "train_set_y", "test_set_y", "y_val",  "Y_val",  "val_y",        "val_labels",
    "target",      "targets",    "class",  "classes"};
inline constexpr std::array kClassNames{"classes", "class_names", "list_classes"};

/// The usual names of labels for a dataset of images, best first: for `x_test` it is `y_test` and
/// never `y_train`.
[[nodiscard]] std::vector<std::string> label_names_for(std::string_view images);

/// Whether type and shape are those of labels: numbers or strings, one for each sample, or rows of
/// zeros with a single one, whose index is the label. False for datasets of class names.
[[nodiscard]] bool may_be_labels(const Dataset& dataset, std::uint64_t samples);

/// Whether a dataset holds strings and has a usual name of class names.
[[nodiscard]] bool lists_classes(const Dataset& dataset);

/// As in "'labels' (50 x 5 of float32)".
[[nodiscard]] std::string describe(const Dataset& dataset);

/// Describes datasets of integers, one for each sample, without a usual name; empty if there are
/// none.
[[nodiscard]] std::string other_integers(hid_t file, std::uint64_t samples);

/// Reads integers, booleans, floats that are whole numbers, or the indexes of ones in rows of
/// zeros; empty if the dataset holds anything else.  REQUIRES: may_be_labels().
[[nodiscard]] std::vector<std::int64_t> read_numbers(const Dataset& dataset, std::uint64_t samples);

/// Reads strings on one axis; empty if the dataset holds anything else, or strings of a fixed width
/// above `longest`. Strings of variable length are cut to `longest`.
[[nodiscard]] std::vector<std::string> read_texts(const Dataset& dataset, std::size_t longest);

/// Splits strings of the fixed width of `type` and removes their padding.
[[nodiscard]] std::vector<std::string> cut_texts(hid_t type, std::string_view texts);

/// The class names that precache stores in an attribute of the labels; empty if no dataset of
/// labels in `group` has it, or it holds more than `most_bytes`.
[[nodiscard]] std::vector<std::string> class_names_of(hid_t file, const std::string& group,
                                                      std::string_view images,
                                                      std::uint64_t most_bytes);

}  // namespace precache::hdf5
