// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "convert/source/keys.hpp"
#include "convert/source/listing.hpp"

namespace precache {

/// The bytes that a sample has in a slice, apart from its texts.
inline constexpr std::size_t kSampleHeadBytes = 48;

/// Appends a sample to the bytes of a slice, as docs/internals/plan.md specifies. `key` is empty if
/// it follows from the path.
void append_sample(std::string& bytes, const ListedFile& file, std::string_view key);

/// Samples that were written down: those of one shard, in the order of its records. Immutable, so
/// any number of threads may use one at once.
class Slice {
 public:
  /// Throws CorruptData unless `bytes` are exactly `samples` samples. `path` and `offset` say where
  /// they come from, for messages.
  Slice(std::vector<std::byte> bytes, std::uint64_t samples, const std::filesystem::path& path,
        std::uint64_t offset);

  [[nodiscard]] std::uint64_t size() const { return begins_.size(); }
  /// Its texts are valid as long as the slice.
  [[nodiscard]] ListedFile file(std::uint64_t slot) const;
  [[nodiscard]] std::string key(std::uint64_t slot, KeyRule rule, bool short_keys) const;

 private:
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t size) const;
  [[nodiscard]] std::string_view text(std::uint64_t at, std::uint64_t size) const;

  std::vector<std::byte> bytes_;
  std::vector<std::uint64_t> begins_;
};

}  // namespace precache
