// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convert/job/shard_job.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/source.hpp"

namespace precache {

/// A job that makes one split of a source of images.
class ImageJob : public ShardJob {
 protected:
  /// Throws InvalidArgument and IoError if `source` and `out` cannot be what is asked for.
  ImageJob(const ImageJobOptions& options, JobRequest request, JobProgress& progress,
           JobReport& report);

  /// Which sample goes to which shard.  REQUIRES: source() and keys().
  [[nodiscard]] virtual Plan plan_shards() = 0;
  /// About what the shard takes.
  [[nodiscard]] virtual std::uint64_t shard_bytes(std::uint64_t shard) const = 0;
  [[nodiscard]] virtual Labelling labelling() { return labelling_of(options_); }

  [[nodiscard]] const Keys& keys() const { return *keys_; }
  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] const Listing& listing() const { return source_.listing; }
  /// `shard_count` if it was given, else 0. Throws InvalidArgument if there are fewer samples.
  [[nodiscard]] std::uint64_t checked_shard_count() const;
  /// What options that all such jobs have add to the identity: files count by their content. Throws
  /// IoError.
  [[nodiscard]] nlohmann::ordered_json image_identity() const;
  void fill_images(JobEstimate& estimate) const;
  [[noreturn]] void refuse_finished() const;

  [[nodiscard]] Source list(Unpacker& unpacker) override;
  void make_plan(Source source) override;
  [[nodiscard]] const Source& source() const override { return source_; }
  [[nodiscard]] Format format() const override { return options_.format; }
  [[nodiscard]] std::vector<JobSplit> plans() const override;
  [[nodiscard]] std::function<SampleCrc()> crc_reader(const JobSplit& split) const override;

  bool short_keys_ = false;

 private:
  [[nodiscard]] static Labelling labelling_of(const ImageJobOptions& options);

  const ImageJobOptions& options_;
  Source source_;
  std::optional<Keys> keys_;
  std::optional<Plan> plan_;
};

}  // namespace precache
