// SPDX-License-Identifier: Apache-2.0
#include "convert/build/split_rule.hpp"

#include <fmt/format.h>

#include "convert/job/job_file.hpp"
#include "convert/job/work_names.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

void check_split_options(const BuildOptions& options) {
  if (!options.val_fraction && options.split_file.empty()) return;
  const char* const field = options.val_fraction ? "val_fraction" : "split_file";
  if (options.val_fraction && !options.split_file.empty()) {
    throw InvalidArgument("`val_fraction` cannot be combined with `split_file`");
  }
  if (options.val_fraction && !(*options.val_fraction > 0 && *options.val_fraction < 1)) {
    throw InvalidArgument(fmt::format("`val_fraction` must be more than 0 and less than 1, got {}",
                                      *options.val_fraction),
                          "0.2 is a fifth of the samples.");
  }
  if (options.split != "train") {
    throw InvalidArgument(fmt::format(
        "`split` {} cannot be combined with `{}`, which names the splits", options.split, field));
  }
}

/// The splits of a prepared job that makes several; none if there is no such job.
std::vector<std::string> prepared_splits(const BuildOptions& options) {
  std::vector<std::string> names;
  if (options.step != JobStep::kPart && options.step != JobStep::kFinish) return names;
  const auto job = frozen_job(options.out, work_names::kSeveralSplits);
  if (!job) return names;
  for (const SplitEstimate& split : job->facts.splits) names.push_back(split.name);
  return names;
}

}  // namespace

SplitRule::SplitRule(const BuildOptions& options) : options_(options) {
  check_split_options(options);
  if (options.split_file.empty()) return;
  prepared_ = prepared_splits(options);
  if (prepared_.empty()) file_.emplace(options.split_file, options.source);
}

std::vector<std::string> SplitRule::names() const {
  if (!prepared_.empty()) return prepared_;
  if (file_) return file_->names();
  if (options_.val_fraction) return {"train", "val"};
  return {options_.split};
}

SplitSamples SplitRule::split(const Listing& listing) const {
  if (file_) return file_->split(listing);
  // The prepared job is gone, so a part prepares it again.
  if (!prepared_.empty()) return SplitFile(options_.split_file, options_.source).split(listing);
  if (!options_.val_fraction) return {};
  return split_by_fraction(listing, *options_.val_fraction, options_.seed);
}

}  // namespace precache
