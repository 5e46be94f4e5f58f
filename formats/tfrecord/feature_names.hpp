// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

/// What others call the features of images, in the order in which they are looked for.
namespace precache::tfrecord {

inline constexpr std::array<std::string_view, 7> kImageNames{
    "image/encoded", "image", "image_raw", "img", "jpg", "jpeg", "png"};
inline constexpr std::array<std::string_view, 4> kLabelNames{"image/class/label", "label", "class",
                                                             "cls"};
/// Where only the name of a class is.
inline constexpr std::array<std::string_view, 3> kLabelTexts{"image/class/text", "label_name",
                                                             "class_name"};
inline constexpr std::array<std::string_view, 8> kKeyNames{
    "key",      "image/filename", "__key__",         "image_id",
    "filename", "file_name",      "image/source_id", "id"};

}  // namespace precache::tfrecord
