// SPDX-License-Identifier: Apache-2.0
#include "convert/source/slice.hpp"

#include <array>
#include <span>

#include "formats/bytes/little_endian.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {

void append_sample(std::string& bytes, const ListedFile& file, std::string_view key) {
  std::array<char, kSampleHeadBytes> head{};
  auto* at = head.data();
  for (const std::uint64_t number :
       {std::uint64_t{file.path.size()}, std::uint64_t{key.size()},
        std::uint64_t{file.targets.size()}, std::uint64_t{file.shard}}) {
    at = put_little_endian(at, number, 4);
  }
  for (const std::uint64_t number : {file.size, static_cast<std::uint64_t>(file.mtime_ns),
                                     static_cast<std::uint64_t>(file.label), file.offset}) {
    at = put_little_endian(at, number, 8);
  }
  bytes.append(head.data(), head.size()).append(file.path).append(key).append(file.targets);
}

Slice::Slice(std::vector<std::byte> bytes, std::uint64_t samples, const std::filesystem::path& path,
             std::uint64_t offset)
    : bytes_(std::move(bytes)) {
  const auto refuse = [&](std::uint64_t at, const char* what) {
    throw CorruptData(path, offset + at, what);
  };
  if (samples > bytes_.size() / kSampleHeadBytes) refuse(0, "a slice is too short for its samples");
  begins_.reserve(samples);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    if (bytes_.size() - at < kSampleHeadBytes)
      refuse(at, "a sample runs past the end of its slice");
    const std::uint64_t texts = number(at, 4) + number(at + 4, 4) + number(at + 8, 4);
    if (bytes_.size() - at - kSampleHeadBytes < texts) {
      refuse(at, "a sample runs past the end of its slice");
    }
    begins_.push_back(at);
    at += kSampleHeadBytes + texts;
  }
  if (at != bytes_.size()) refuse(at, "a slice has bytes after its samples");
}

std::uint64_t Slice::number(std::uint64_t at, std::size_t size) const {
  return little_endian(std::span(bytes_).subspan(at, size));
}

std::string_view Slice::text(std::uint64_t at, std::uint64_t size) const {
  return as_text(std::span(bytes_).subspan(at, size));
}

ListedFile Slice::file(std::uint64_t slot) const {
  const std::uint64_t at = begins_[slot];
  const std::uint64_t path = at + kSampleHeadBytes;
  const std::uint64_t targets = path + number(at, 4) + number(at + 4, 4);
  return {text(path, number(at, 4)),
          number(at + 16, 8),
          static_cast<std::int64_t>(number(at + 24, 8)),
          static_cast<std::int64_t>(number(at + 32, 8)),
          static_cast<std::uint32_t>(number(at + 12, 4)),
          number(at + 40, 8),
          text(targets, number(at + 8, 4))};
}

std::string Slice::key(std::uint64_t slot, KeyRule rule, bool short_keys) const {
  const std::uint64_t at = begins_[slot];
  const std::uint64_t path_bytes = number(at, 4);
  const std::string_view key = text(at + kSampleHeadBytes + path_bytes, number(at + 4, 4));
  if (!key.empty()) return std::string(key);
  return plain_key(text(at + kSampleHeadBytes, path_bytes), rule, short_keys);
}

}  // namespace precache
