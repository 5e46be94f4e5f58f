// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "convert/job/plan_file.hpp"
#include "convert/job/shard_job.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/sample_splits.hpp"
#include "convert/source/source.hpp"

namespace precache {

/// A job that makes a split from a source of images, or several.
class ImageJob : public ShardJob {
 protected:
  /// Makes `request.splits`; if there are none, the one of `options`. Throws InvalidArgument and
  /// IoError if `source` and `out` do not fit.
  ImageJob(const ImageJobOptions& options, JobRequest request, bool short_keys,
           JobProgress& progress, JobReport& report, JobEstimate& estimate);

  /// Divides the listing between the splits of the request; empty if one split has all samples.
  [[nodiscard]] virtual SplitSamples divide() { return {}; }
  /// Assigns samples to shards, by facts().
  [[nodiscard]] virtual std::vector<JobSplit> plan_splits() = 0;
  [[nodiscard]] virtual Labelling labelling();
  /// Stands for these samples in the manifest. `of_listing` is the fingerprint of the listing.
  [[nodiscard]] virtual std::string source_fingerprint(const Listing& /*samples*/,
                                                       const std::string& of_listing) const {
    return of_listing;
  }

  /// Changes when a file of these samples does.
  [[nodiscard]] virtual std::uint64_t stamp_of(const Listing& samples) const {
    return samples.stamp();
  }
  /// Returns the bytes that the plan keeps of a sample after its targets; empty: none.
  [[nodiscard]] virtual PlanFile::Note note() const { return {}; }

  /// Stands for the content of a file in an identity; reads it once. Throws IoError.
  [[nodiscard]] const std::string& digest_of(const std::filesystem::path& file) const;
  /// The facts about all samples.
  [[nodiscard]] const SourceFacts& facts() const { return frozen_ ? frozen_->facts() : facts_; }
  /// The samples before the plan is frozen.
  [[nodiscard]] const Listing& listing() const { return source().listing; }
  /// The plan once it is frozen, else null.
  [[nodiscard]] const PlanFile* frozen() const { return frozen_ ? &*frozen_ : nullptr; }
  /// The number in the listing of a sample of a split.
  [[nodiscard]] std::uint64_t listed(const JobSplit& split, std::uint64_t sample) const;
  [[nodiscard]] SampleName name_of(const Slice& slice, std::uint64_t slot) const;
  /// `shard_count` if it was given, else 0. Throws InvalidArgument if a split has fewer samples.
  [[nodiscard]] std::uint64_t checked_shard_count(const PlannedSplitFacts& split) const;
  /// The fingerprint of the source of a split; empty before the plan.
  [[nodiscard]] std::string fingerprint(const JobSplit& split) const;

  /// The part of the identity that follows from ImageJobOptions. Files count by their content.
  /// Throws IoError.
  [[nodiscard]] nlohmann::ordered_json identity() const override;
  [[nodiscard]] Source list(Unpacker& unpacker) override;
  void list_share(const std::filesystem::path& path) override;
  void save_plan(const std::filesystem::path& path, const std::string& identity) override;
  void open_plan(const std::filesystem::path& path, const std::string& identity) override;
  void verify_plan(const std::filesystem::path& path) const override { PlanFile(path).verify(); }
  [[nodiscard]] std::uint64_t source_stamp() const override { return facts().stamp; }
  void find_source(Source& source, const std::string& listed_root) override;
  [[nodiscard]] std::vector<JobSplit> make_plan() override;
  void describe_plan() override;
  [[nodiscard]] std::string source_difference(const JobSplit& split) override;
  [[nodiscard]] std::function<SampleCrc()> crc_reader(const JobSplit& split) const override;

 private:
  /// The options that a share of the listing depends on.
  [[nodiscard]] std::string share_identity() const;

  const ImageJobOptions& options_;
  JobEstimate& estimate_;
  bool short_keys_;
  std::optional<Keys> keys_;  // none when the plan is frozen
  SourceFacts facts_;
  SplitSamples samples_;  // as divide() returned them; empty when the plan is frozen
  std::optional<PlanFile> frozen_;
  mutable std::map<std::filesystem::path, std::string> digests_;
};

}  // namespace precache
