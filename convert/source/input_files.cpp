// SPDX-License-Identifier: Apache-2.0
#include "convert/source/input_files.hpp"

#include "formats/bytes/crc32c.hpp"

namespace precache {

std::string InputFiles::origin(std::uint64_t sample) const {
  const ListedFile listed = source_.listing[sample];
  if (source_.shards.empty()) return std::string(listed.path);
  const std::filesystem::path& shard = source_.shards[listed.shard].given.path;
  return shard.filename().string() + ":" + std::string(listed.path);
}

std::filesystem::path InputFiles::full_origin(std::uint64_t sample) const {
  if (source_.shards.empty()) return root_ / origin(sample);
  const ListedFile listed = source_.listing[sample];
  return source_.shards[listed.shard].given.path.parent_path() / origin(sample);
}

std::unique_ptr<SampleReader> InputFiles::reader() const {
  if (source_.shards.empty()) return std::make_unique<FileReader>(root_);
  return std::make_unique<ShardReader>(shards_);
}

std::function<std::uint32_t(std::uint64_t)> InputFiles::crc_reader() const {
  return [this, reader = std::shared_ptr<SampleReader>(reader())](std::uint64_t sample) {
    std::span<const std::byte> bytes;
    return reader->read(source_.listing[sample], bytes) ? 0 : crc32c::value(bytes);
  };
}

}  // namespace precache
