// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "convert/job/plan.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/source.hpp"
#include "formats/shard/framing.hpp"
#include "precache/convert/build.hpp"

namespace precache {

/// Everything that follows from the source and the options, before the first image is read.
class BuildPlan {
 public:
  /// Throws InvalidArgument if the options do not fit the source.
  BuildPlan(const BuildOptions& options, Source source);
  BuildPlan(const BuildPlan&) = delete;
  BuildPlan& operator=(const BuildPlan&) = delete;

  [[nodiscard]] const Source& source() const { return source_; }
  [[nodiscard]] const Keys& keys() const { return keys_; }
  [[nodiscard]] const Framing& framing() const { return *framing_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] BuildEstimate preview(const BuildOptions& options) const;

 private:
  [[nodiscard]] std::uint64_t shard_count(const BuildOptions& options) const;
  [[nodiscard]] std::string longest_key() const;

  Source source_;
  Keys keys_;
  std::unique_ptr<const Framing> framing_;
  Plan plan_;
};

}  // namespace precache
