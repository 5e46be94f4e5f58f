// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"
#include "convert/job/plan.hpp"
#include "convert/job/shard_builder.hpp"
#include "formats/shard/framing.hpp"
#include "precache/convert/job.hpp"

namespace precache {

/// The outcome for one sample whose tensor was asked for.
struct MadeTensor {
  std::optional<Rejection> rejection{};
  std::uint32_t source_crc = 0;  // CRC-32C of the sample's bytes in the source; 0 if not readable
  bool warned = false;           // the decoder took the sample with a warning
  bool turned = false;           // by its EXIF orientation
  std::optional<std::uint32_t> tensor_crc{};  // of the tensor, if it was copied as it was read
};

/// Where a record is in the plan, and the number of the sample that it is made of.
struct PlannedRecord {
  std::uint64_t shard = 0;
  std::uint64_t slot = 0;
  std::uint64_t sample = 0;
};

/// Fills `tensor` with that of a sample, and `values` with those of its named columns. Each thread
/// has its own. Throws IoError if the system refuses, or if the source has changed since it was
/// listed.
using TensorMaker = std::function<MadeTensor(
    const PlannedRecord& record, std::span<std::byte> tensor, std::span<std::byte> values)>;

/// The samples of a run. Any number of threads may call the functions at once.
struct RecordInput {
  std::function<SampleName(const PlannedRecord& record)> name;
  /// The path of a sample as reports of rejected samples show it.
  std::function<std::string(const PlannedRecord& record)> origin;
  std::function<TensorMaker()> tensor_maker;
};

/// A shard to write.
struct PendingShard {
  std::uint64_t number = 0;
  std::filesystem::path temporary;
  std::filesystem::path final_path;
};

/// The parts that all records of a run share.
struct ShardRunInput {
  const RecordInput& samples;
  const Plan& plan;
  const Framing& framing;
  std::uint64_t tensor_bytes;
  /// The run ends early when more samples than this were rejected, those of `rejected_before`
  /// included.
  std::uint64_t allowed_rejections;
  std::uint64_t rejected_before;
  /// With more than one, threads spread over that many shards. This helps if the work is little
  /// more than writing, because threads that write to one file wait for one another. A run that is
  /// interrupted loses its unfinished shards.
  std::size_t shards_at_once = 1;
};

struct ShardRunOutcome {
  std::vector<SkippedSample> skipped;  // by this run, in the order of the plan
  std::uint64_t converted = 0;
  bool too_many_rejections = false;
};

/// The calls of a run for each shard.
struct ShardCalls {
  using Call = std::function<void(const PendingShard&, const ShardResult&)>;
  /// Before anything is done for a shard, from any thread. False leaves the shard out.
  std::function<bool(const PendingShard&)> begin;
  // From one thread at a time:
  Call save;  // the shard is complete and synced, but does not have its final name yet
  Call done;  // it has its final name
};

/// Converts the samples of the pending shards on all threads of the caller's arena; empty shards
/// first.
[[nodiscard]] ShardRunOutcome run_shards(const ShardRunInput& input,
                                         const std::vector<PendingShard>& pending,
                                         JobProgress& progress, const ShardCalls& calls);

}  // namespace precache
