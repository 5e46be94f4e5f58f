// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

/// What others call the datasets of images, in the order in which they are looked for.
namespace precache::hdf5 {

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
/// Of the labels, in precache files: readers of rows take every dataset of a file for a column.
inline constexpr const char* kClassesAttribute = "classes";
inline constexpr const char* kCrcName = "crc32c";  // ours alone

}  // namespace precache::hdf5
