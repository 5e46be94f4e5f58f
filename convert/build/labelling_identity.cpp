// SPDX-License-Identifier: Apache-2.0
#include "convert/build/labelling_identity.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"

namespace precache {
namespace {

std::string file_digest(const std::filesystem::path& path) {
  return fmt::format("crc32c:{:08x}", crc32c::value(read_file(path)));
}

}  // namespace

nlohmann::ordered_json labelling_identity(const std::string& labels,
                                          const std::filesystem::path& classes,
                                          const std::string& image_key,
                                          const std::string& label_key) {
  const bool csv = labels != "none" && labels != "folder";
  return {{"labels", csv ? file_digest(labels) : labels},
          {"classes", classes.empty() ? "" : file_digest(classes)},
          {"image-key", image_key},
          {"label-key", label_key}};
}

nlohmann::ordered_json message_identity(const std::filesystem::path& proto,
                                        const std::string& message) {
  if (proto.empty()) return nlohmann::ordered_json::object();
  return {{"proto", file_digest(proto)}, {"message", message}};
}

}  // namespace precache
