// SPDX-License-Identifier: Apache-2.0
#include "convert/sidecars/dali_index.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/checked_math.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_names.hpp"
#include "formats/tar/tar_finder.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"
#include "reader/shards/mapped_shard.hpp"

namespace precache::dali {
namespace {

constexpr std::string_view kTarVersion = "v1.2";

void add_record(Index& index, std::uint64_t begin, std::uint64_t bytes) {
  fmt::format_to(std::back_inserter(index.text), "{} {}\n", begin, bytes);
  ++index.samples;
}

/// Replaces white space, which separates fields. DALI uses names in messages only.
std::string one_word(std::string_view text) {
  std::string word;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain = byte > ' ' && byte != 0x7f;
    word += is_plain ? std::string(1, letter) : fmt::format("%{:02X}", byte);
  }
  return word;
}

Index tfrecord_index(std::span<const std::byte> file, const std::filesystem::path& path) {
  Index index;
  tfrecord::RecordCursor records(file, path);
  while (const auto record = records.next()) {
    add_record(index, record->begin, record->end - record->begin);
  }
  return index;
}

Index tar_index(std::span<const std::byte> archive, const std::filesystem::path& path) {
  Index index;
  std::string lines;
  tar::SampleFinder(archive, path).run([&](const tar::FoundGroup& group) {
    if (group.key.empty()) return;
    if (index.samples++ != 0) lines += '\n';
    for (const tar::FoundFile& file : group.files) {
      refuse_sparse(file, path);
      fmt::format_to(std::back_inserter(lines), "{}{} {} {} {}",
                     &file == &group.files.front() ? "" : " ", one_word(file.written_extension()),
                     file.entry.data, file.entry.size, one_word(file.name));
    }
  });
  index.text = fmt::format("{} {}\n{}\n", kTarVersion, index.samples, lines);
  return index;
}

}  // namespace

std::filesystem::path index_path(const std::filesystem::path& shard) {
  // Other endings may be part of what distinguishes shards: data.tfrecord-00000-of-00002.
  const std::string file = shard.filename().string();
  return shard.parent_path() / (std::string(without_shard_ending(file)) + ".idx");
}

Index index_of(const std::filesystem::path& shard, Format format) {
  const MappedShard mapped(shard);
  Index index = format == Format::kTar ? tar_index(mapped.bytes(), shard)
                                       : tfrecord_index(mapped.bytes(), shard);
  mapped.check();
  return index;
}

Index index_of(const std::filesystem::path& shard, const ShardEntry& entry) {
  const std::uint64_t record_bytes = entry.columns->image.stride;
  const std::uint64_t bytes = File(shard, O_RDONLY).size();
  if (bytes != entry.bytes || bytes != checked_mul(entry.samples, record_bytes)) {
    throw CorruptData(shard, std::min(bytes, entry.bytes),
                      fmt::format("the file has {} bytes, the manifest says {} in {} records of {}",
                                  bytes, entry.bytes, entry.samples, record_bytes));
  }
  Index index;
  for (std::uint64_t i = 0; i < entry.samples; ++i)
    add_record(index, i * record_bytes, record_bytes);
  return index;
}

bool is_index(std::string_view text, Format format) {
  if (format == Format::kTar) return text.starts_with("v1.");
  const std::string_view line = text.substr(0, text.find('\n'));
  return std::ranges::count(line, ' ') == (text.empty() ? 0 : 1) &&
         line.find_first_not_of("0123456789 ") == std::string_view::npos;
}

}  // namespace precache::dali
