// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/cut_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "formats/bytes/count_text.hpp"
#include "formats/shard/framing.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/webdataset.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// Groups entries to samples, as webdataset does.
class SampleCounter {
 public:
  void take(const tar::Entry& entry) {
    if (entry.type != tar::EntryType::kFile) return;
    const tar::SplitName name = tar::split_name(entry.name);
    if (name.key.empty()) return;
    if (fields_ != 0 && name.key != key_) {
      ++ended_;
      fields_before_ = fields_;
      fields_ = 0;
    }
    key_ = name.key;
    ++fields_;
  }

  /// The last one counts if it has as many files as the one before: where the archive breaks off,
  /// nothing else tells whether another should follow.
  [[nodiscard]] std::uint64_t whole() const {
    return ended_ + (fields_ != 0 && fields_ == fields_before_ ? 1 : 0);
  }

 private:
  std::string key_;
  std::uint64_t ended_ = 0;
  std::uint64_t fields_ = 0;  // of the sample in work
  std::uint64_t fields_before_ = 0;
};

}  // namespace

std::optional<CutShard> find_cut(std::span<const std::byte> archive,
                                 const std::filesystem::path& path) {
  SampleCounter samples;
  tar::EntryCursor entries(archive, path);
  try {
    while (const auto entry = entries.next()) samples.take(*entry);
  } catch (const CorruptData& error) {
    return CutShard{
        samples.whole(), error.offset(),
        fmt::format("{}; the file ends at byte {}; whole before the damage: {}", error.reason(),
                    archive.size(), human::count(samples.whole(), "sample"))};
  }
  return std::nullopt;
}

std::optional<CutShard> find_cut(const ListedShard& shard, std::uint64_t bytes) {
  const std::uint64_t known = shard.known_bytes().value_or(bytes);
  if (known == bytes) return std::nullopt;
  CutShard cut{0, std::min(bytes, known),
               fmt::format("the file has {} bytes, the manifest says {}", bytes, known)};
  // Records of HDF5 do not follow each other from the begin of the file.
  if (shard.entry == nullptr || shard.manifest->format == Format::kHdf5) return cut;
  const std::uint64_t stride = shard.entry->columns.image.stride;
  if (stride == 0 || bytes > known) return cut;
  cut.samples = std::min(bytes / stride, shard.entry->samples);
  cut.reason += fmt::format("; {} of its {} lie before the cut", human::count(cut.samples),
                            human::count(shard.entry->samples, "sample"));
  return cut;
}

}  // namespace precache
