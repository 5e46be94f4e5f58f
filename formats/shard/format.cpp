// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/format.hpp"

#include "formats/bytes/enum_names.hpp"

namespace precache {

std::string_view name(Format format) {
  switch (format) {
    case Format::kTar:
      return "tar";
    case Format::kTfrecord:
      return "tfrecord";
    case Format::kHdf5:
      return "hdf5";
  }
  return {};
}

std::string_view extension(Format format) {
  switch (format) {
    case Format::kTar:
      return ".tar";
    case Format::kTfrecord:
      return ".tfrecord";
    case Format::kHdf5:
      return ".h5";
  }
  return {};
}

Format parse_format(std::string_view text) { return parse_enum(kAllFormats, text, "format"); }

}  // namespace precache
