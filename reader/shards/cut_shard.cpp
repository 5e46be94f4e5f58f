// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/number_text.hpp"
#include "formats/shard/framing.hpp"
#include "formats/tar/tar_finder.hpp"
#include "precache/formats/error.hpp"
#include "reader/shards/shard_listing.hpp"

namespace precache {

std::optional<CutShard> find_cut(std::span<const std::byte> archive,
                                 const std::filesystem::path& path) {
  std::uint64_t samples = 0;
  std::size_t files = 0;  // of the last sample
  tar::SampleFinder finder(archive, path);
  try {
    finder.run([&](const tar::FoundGroup& group) {
      if (group.key.empty()) return;
      ++samples;
      files = group.files.size();
    });
  } catch (const CorruptData& error) {
    // The last sample counts if it has as many files as the one before it. Nothing else shows
    // whether the missing part had another file of it.
    if (files != 0 && finder.unfinished().files.size() == files) ++samples;
    return CutShard{samples, error.offset(),
                    fmt::format("{}; the file ends at byte {}; whole before the damage: {}",
                                error.reason(), archive.size(), human::count(samples, "sample"))};
  }
  return std::nullopt;
}

std::optional<CutShard> find_cut(const ListedShard& shard, std::uint64_t bytes) {
  const ShardEntry* facts = shard.known();
  if (facts == nullptr || facts->bytes == bytes) return std::nullopt;
  const std::uint64_t known = facts->bytes;
  CutShard cut{0, std::min(bytes, known),
               fmt::format("the file has {} bytes, the manifest says {}", bytes, known)};
  // Records of HDF5 do not follow each other from the beginning of the file.
  if (shard.entry == nullptr || shard.manifest->format == Format::kHdf5) return cut;
  const std::uint64_t stride = shard.entry->columns->image.stride;
  if (stride == 0 || bytes > known) return cut;
  cut.samples = std::min(bytes / stride, shard.entry->samples);
  cut.reason += fmt::format("; {} of its {} are before the cut", human::count(cut.samples),
                            human::count(shard.entry->samples, "sample"));
  return cut;
}

}  // namespace precache
