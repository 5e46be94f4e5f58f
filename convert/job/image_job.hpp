// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "convert/job/shard_job.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/source.hpp"

namespace precache {

/// A job that makes one split from a source of images.
class ImageJob : public ShardJob {
 protected:
  /// Throws InvalidArgument and IoError if `source` and `out` do not fit.
  ImageJob(const ImageJobOptions& options, JobRequest request, bool short_keys,
           JobProgress& progress, JobReport& report, JobEstimate& preview);

  /// Assigns samples to shards.  REQUIRES: listing() and keys().
  [[nodiscard]] virtual JobSplit plan_split() = 0;
  [[nodiscard]] virtual Labelling labelling();

  [[nodiscard]] OutFolder& out() { return ShardJob::out(options_.split); }
  [[nodiscard]] const Keys& keys() const { return *keys_; }
  [[nodiscard]] const Listing& listing() const { return source().listing; }
  /// `shard_count` if it was given, else 0. Throws InvalidArgument if there are fewer samples.
  [[nodiscard]] std::uint64_t checked_shard_count() const;

  /// The part of the identity that follows from ImageJobOptions. Files count by their content.
  /// Throws IoError.
  [[nodiscard]] nlohmann::ordered_json identity() const override;
  [[nodiscard]] Source list(Unpacker& unpacker) override;
  [[nodiscard]] std::vector<JobSplit> make_plan() override;
  void describe_plan() override;
  [[nodiscard]] std::string source_difference() override;
  [[nodiscard]] std::function<SampleCrc()> crc_reader(const JobSplit& split) const override;

 private:
  const ImageJobOptions& options_;
  JobEstimate& preview_;
  bool short_keys_;
  std::optional<Keys> keys_;
};

}  // namespace precache
