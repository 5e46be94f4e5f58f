// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "convert/job/plan.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/source.hpp"
#include "convert/source/unpacker.hpp"
#include "formats/shard/framing.hpp"
#include "precache/convert/pack.hpp"

namespace precache {

/// Everything that follows from the source and the options, before the first image is read.
class PackPlan {
 public:
  /// Throws InvalidArgument if the options do not fit the source, Unsupported if it holds arrays.
  PackPlan(const PackOptions& options, Source source);
  PackPlan(const PackPlan&) = delete;
  PackPlan& operator=(const PackPlan&) = delete;

  [[nodiscard]] Format format() const { return format_; }
  [[nodiscard]] const Source& source() const { return source_; }
  [[nodiscard]] const Listing& listing() const { return source_.listing; }
  [[nodiscard]] const Keys& keys() const { return keys_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// About as large as the shard will be.
  [[nodiscard]] std::uint64_t shard_bytes(std::uint64_t shard) const;
  [[nodiscard]] PackEstimate preview(const PackOptions& options) const;

 private:
  [[nodiscard]] Plan make_plan(const PackOptions& options) const;
  [[nodiscard]] std::uint64_t image_bytes(std::uint64_t shard) const;

  Format format_;
  Source source_;
  Keys keys_;
  std::uint64_t overhead_;  // of a record, about
  Plan plan_;
};

/// Lists the source as the options say. Throws as open_source() does.
[[nodiscard]] Source list_source(const PackOptions& options, Unpacker& unpacker);

/// The options that decide over the bytes of the shards, as a JSON object. Throws IoError.
[[nodiscard]] std::string identity_of(const PackOptions& options);

}  // namespace precache
