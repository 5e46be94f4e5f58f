// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "convert/source/listing.hpp"
#include "formats/shard/framing.hpp"

namespace precache {

/// What of a sample's path is its key.
enum class KeyRule {
  kPath,      // all but the extension: of files
  kFirstDot,  // what stands before the first dot of the base name: of webdataset's shards
  kName       // all, but for an image's extension: of shards whose samples have keys
};

/// The key that a path gives: without its extension, dots in the base name replaced by `_`
/// (webdataset takes all behind the first dot for an extension), invalid UTF-8 and what makes
/// webdataset drop a name percent-escaped. So are zero bytes and parts `.` and `..`, which no file
/// has, but a name in a shard may.
[[nodiscard]] std::string key_of_path(std::string_view path, KeyRule rule = KeyRule::kPath);

/// A key of at most this many bytes fits the name field of a tar header, with its extension.
inline constexpr std::size_t kShortKeyBytes = 96;

/// A distinct key for every sample of a listing. Where several paths give one key, the first in the
/// listing keeps it and the others get `~2`, `~3`, ... after it. Short keys are cut to
/// kShortKeyBytes, and end in `~` and a CRC where that was needed.
class Keys {
 public:
  explicit Keys(const Listing& listing, KeyRule rule = KeyRule::kPath, bool short_keys = false);
  [[nodiscard]] std::string key(std::size_t sample) const;
  [[nodiscard]] const NameLimits& limits() const { return limits_; }

 private:
  [[nodiscard]] std::string fitting(std::string key) const;
  [[nodiscard]] std::string wanted(std::size_t sample) const;

  const Listing& listing_;
  KeyRule rule_;
  bool short_keys_;
  std::unordered_map<std::size_t, std::string> renamed_;
  NameLimits limits_;
};

}  // namespace precache
