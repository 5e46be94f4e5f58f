// SPDX-License-Identifier: Apache-2.0
#include "convert/job/same_source.hpp"

#include <fmt/format.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <vector>

#include "convert/source/source_path.hpp"
#include "convert/source/unpacker.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/splitmix.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr const char* kAttribute = "user.precache.plan";
constexpr std::size_t kSamplesAtOnce = 64;
constexpr std::uint64_t kBufferBytes = 256 << 10;
// Enough to tell another source, few enough for a file system that takes a millisecond for each.
constexpr std::uint64_t kComparedShards = 64;
constexpr std::uint64_t kComparedSamples = 16;

namespace fs = std::filesystem;

[[noreturn]] void refuse_other_source(const fs::path& path) {
  throw InvalidArgument(
      fmt::format("the unfinished job has another source: '{}' has changed since it was listed",
                  path.string()),
      "Give the same `source` to continue it, set `overwrite` to discard it, or choose another "
      "`out`.");
}

bool is_as_listed(const fs::path& path, std::uint64_t bytes, std::int64_t time) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 &&
         static_cast<std::uint64_t>(status.st_size) == bytes && mtime_ns(status) == time;
}

/// The number of the first shard whose file is not as listed, else that of all shards. A look takes
/// a millisecond on a network file system, so there are several at a time.
std::size_t first_changed(const Source& source, FileStamp SourceShard::*file) {
  std::vector<unsigned char> is_same(source.shards.size());
  tbb::parallel_for(std::size_t{0}, is_same.size(), [&](std::size_t i) {
    const FileStamp& stamp = source.shards[i].*file;
    is_same[i] = is_as_listed(stamp.path, stamp.bytes, stamp.mtime_ns) ? 1 : 0;
  });
  return static_cast<std::size_t>(std::ranges::find(is_same, 0) - is_same.begin());
}

void check_shards(Source& source, const fs::path& root, bool compare) {
  const SourcePath now = resolve_source(root);
  const auto files = now.kind == SourcePath::Kind::kFolder ? shards_in_folder(root) : now.files;
  const bool is_stream = now.kind == SourcePath::Kind::kStream;
  if (files.size() != source.shards.size() || is_stream != source.shards.front().is_stream()) {
    refuse_other_source(root);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    SourceShard& shard = source.shards[i];
    if (!shard.is_copied()) shard.data.path = files[i];
    shard.given.path = files[i];
  }
  if (!compare) return;
  if (!is_stream) {
    const auto changed = first_changed(source, &SourceShard::given);
    if (changed != files.size()) refuse_other_source(files[changed]);
  }
  // Where there is no copy, this is the same file.
  if (source.unpacked_bytes() == 0) return;
  const auto changed = first_changed(source, &SourceShard::data);
  if (changed == files.size()) return;
  throw IoError("the copy has changed since it was made:", source.shards[changed].data.path, 0,
                "Set `overwrite` to start over.");
}

/// Compares some files of shards all over the plan.
void check_files(const fs::path& root, const PlanFile& plan) {
  const std::uint64_t step = std::max<std::uint64_t>(1, plan.shards() / kComparedShards);
  tbb::parallel_for(std::uint64_t{0}, (plan.shards() + step - 1) / step, [&](std::uint64_t i) {
    const Slice slice = plan.slice(i * step);
    for (std::uint64_t slot = 0; slot < std::min(kComparedSamples, slice.size()); ++slot) {
      const ListedFile listed = slice.file(slot);
      if (!is_as_listed(root / listed.path, listed.size, listed.mtime_ns)) {
        refuse_other_source(root / listed.path);
      }
    }
  });
}

bool is_remembered(const fs::path& first_shard, const std::string& plan) {
  std::array<char, 64> value{};
  const ssize_t size = ::getxattr(first_shard.c_str(), kAttribute, value.data(), value.size());
  return size > 0 && std::string_view(value.data(), static_cast<std::size_t>(size)) == plan;
}

}  // namespace

std::uint64_t content_term(std::uint64_t sample, std::uint32_t crc) {
  return splitmix(splitmix((sample + 1) * kGoldenGamma) ^ crc);
}

std::string content_fingerprint(std::uint64_t sum) { return fmt::format("sum64:{:016x}", sum); }

std::uint32_t crc_of(const File& file, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::byte> buffer(std::min(kBufferBytes, end - begin));
  std::uint32_t crc = 0;
  while (begin < end) {
    const auto part = std::span(buffer).first(std::min<std::uint64_t>(kBufferBytes, end - begin));
    file.read_at(begin, part);
    crc = crc32c::extend(crc, part);
    begin += part.size();
  }
  return crc;
}

SourceComparison compare_content(const ContentCheck& check, JobProgress& progress) {
  if (check.has_times && is_remembered(check.first_shard, check.plan)) {
    return SourceComparison::kTimes;
  }
  if (check.fingerprint.empty()) return SourceComparison::kNames;
  progress.samples_planned += check.samples;
  std::atomic<std::uint64_t> sum = 0;
  tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, check.samples, kSamplesAtOnce),
                    [&](const tbb::blocked_range<std::uint64_t>& range) {
                      const SampleCrc crc_of = check.reader();
                      for (std::uint64_t i = range.begin(); i < range.end(); ++i) {
                        if (progress.stop) throw UnpackingStopped();
                        sum += content_term(i, crc_of(i));
                        ++progress.samples_done;
                      }
                    });
  if (content_fingerprint(sum) != check.fingerprint) {
    throw InvalidArgument(
        fmt::format("the source has changed since '{}' was made: names, sizes and labels are the "
                    "same, but the content is not",
                    check.first_shard.parent_path().string()),
        "Set `overwrite` to make the split again, or choose another `out`.");
  }
  if (check.has_times) remember_plan(check.first_shard, check.plan);
  return SourceComparison::kContent;
}

void remember_plan(const fs::path& first_shard, const std::string& plan) {
  // If this fails, the next run compares the content.
  (void)::setxattr(first_shard.c_str(), kAttribute, plan.data(), plan.size(), 0);
}

void check_same_source(Source& source, const fs::path& root, const std::string& listed_root,
                       const PlanFile& plan, SourceCheck check) {
  const bool compare = check == SourceCheck::kAll;
  std::error_code error;
  if (!source.shards.empty()) {
    if (compare || listed_root != root.string()) check_shards(source, root, compare);
    return;
  }
  // Another machine may have the source at another path. Workers notice a file that has changed,
  // but not another source if no shard is left to write.
  if (listed_root == root.string() || listed_root == fs::weakly_canonical(root, error).string()) {
    return;
  }
  if (!fs::is_directory(root, error)) refuse_other_source(root);
  if (compare) check_files(root, plan);
}

}  // namespace precache
