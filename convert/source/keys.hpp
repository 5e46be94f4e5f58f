// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "convert/source/listing.hpp"
#include "formats/shard/framing.hpp"

namespace precache {

/// How a sample's path becomes its key.
enum class KeyRule {
  kPath,      // for files: without the extension
  kFirstDot,  // for webdataset shards: up to the first dot of the base name
  kName       // for shards whose samples have keys: without the extension of an image
};

/// The key for a path: without its extension, dots in the base name replaced by `_` (webdataset
/// takes everything after the first dot for an extension). Invalid UTF-8 is percent-escaped, and so
/// is what makes webdataset drop a name, and zero bytes and the parts `.` and `..`, which names in
/// shards may have.
[[nodiscard]] std::string key_of_path(std::string_view path, KeyRule rule = KeyRule::kPath);

/// A key of at most this many bytes fits, with its extension, into the name field of a tar header.
inline constexpr std::size_t kShortKeyBytes = 96;

/// The key that follows from a path alone: key_of_path(), cut if keys are short.
[[nodiscard]] std::string plain_key(std::string_view path, KeyRule rule, bool short_keys);

/// A distinct key for every sample of a listing. If several paths give one key, the first in the
/// listing keeps it and the others get `~2`, `~3`, ... at the end. Short keys have at most
/// kShortKeyBytes; those that were cut end in `~` and a CRC.
class Keys {
 public:
  explicit Keys(const Listing& listing, KeyRule rule = KeyRule::kPath, bool short_keys = false);
  [[nodiscard]] std::string key(std::size_t sample) const;
  /// The key of a sample whose path gives one that another sample has; else empty.
  [[nodiscard]] std::string_view renamed(std::size_t sample) const;
  [[nodiscard]] const NameLimits& limits() const { return limits_; }
  /// The first of the longest keys; empty if there are no samples.
  [[nodiscard]] const std::string& longest() const { return longest_; }

 private:
  [[nodiscard]] std::string wanted(std::size_t sample) const;

  const Listing& listing_;
  KeyRule rule_;
  bool short_keys_;
  std::unordered_map<std::size_t, std::string> renamed_;
  NameLimits limits_;
  std::string longest_;
};

}  // namespace precache
