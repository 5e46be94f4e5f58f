// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace precache {

/// File format of shards.
enum class Format { kTar, kTfrecord, kHdf5 };
inline constexpr std::array kAllFormats{Format::kTar, Format::kTfrecord, Format::kHdf5};

/// "tar", "tfrecord", "hdf5".
[[nodiscard]] std::string_view name(Format format);
/// ".tar", ".tfrecord", ".h5".
[[nodiscard]] std::string_view extension(Format format);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] Format parse_format(std::string_view name);

}  // namespace precache
