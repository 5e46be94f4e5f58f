// SPDX-License-Identifier: Apache-2.0
#include "convert/job/content_fingerprint.hpp"

#include <fmt/format.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <sys/xattr.h>

#include <array>
#include <atomic>
#include <string_view>

#include "convert/source/unpacker.hpp"
#include "formats/bytes/splitmix.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr const char* kAttribute = "user.precache.plan";
constexpr std::size_t kSamplesAtOnce = 64;

bool is_remembered(const std::filesystem::path& first_shard, const std::string& plan) {
  std::array<char, 64> value{};
  const ssize_t size = ::getxattr(first_shard.c_str(), kAttribute, value.data(), value.size());
  return size > 0 && std::string_view(value.data(), static_cast<std::size_t>(size)) == plan;
}

}  // namespace

std::uint64_t content_term(std::uint64_t sample, std::uint32_t crc) {
  return splitmix(splitmix((sample + 1) * kGoldenGamma) ^ crc);
}

std::string content_fingerprint(std::uint64_t sum) { return fmt::format("sum64:{:016x}", sum); }

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
        fmt::format("the source has changed since '{}' was made: the names, sizes and labels are "
                    "the same, the content is not",
                    check.first_shard.parent_path().string()),
        "Set `overwrite` to make the split again, or choose another `out`.");
  }
  if (check.has_times) remember_plan(check.first_shard, check.plan);
  return SourceComparison::kContent;
}

void remember_plan(const std::filesystem::path& first_shard, const std::string& plan) {
  // Without it, the content is compared.
  (void)::setxattr(first_shard.c_str(), kAttribute, plan.data(), plan.size(), 0);
}

}  // namespace precache
