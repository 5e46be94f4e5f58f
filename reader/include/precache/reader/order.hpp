// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "precache/formats/permutation.hpp"

namespace precache {

/// How the samples of an epoch follow each other.
enum class Shuffle {
  kNone,   // as they are stored
  kBlock,  // blocks of neighbours in random order, mixed within a window of blocks: reads large
           // ranges
  kFull,   // every sample anywhere
};

/// "none", "block", "full".
[[nodiscard]] std::string_view name(Shuffle shuffle);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] Shuffle parse_shuffle(std::string_view name);

struct OrderOptions {
  Shuffle shuffle = Shuffle::kNone;
  std::uint64_t block_rows = 64;     // for kBlock: samples that lie and are read together
  std::uint64_t window_blocks = 64;  // for kBlock: blocks that are mixed with each other
  bool operator==(const OrderOptions&) const = default;
};

/// The order of one epoch: which sample stands at which position.
///
/// A pure function of (samples, options, seed, epoch) that docs/reader.md specifies; it holds no
/// table. Immutable, so any number of threads may use one at once.
class EpochOrder {
 public:
  /// Throws InvalidArgument if block_rows or window_blocks is 0 and the shuffle is by blocks.
  EpochOrder(std::uint64_t samples, const OrderOptions& options, std::uint64_t seed,
             std::uint64_t epoch);

  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  /// REQUIRES: position < samples.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t position) const;

 private:
  [[nodiscard]] std::uint64_t block_shuffled(std::uint64_t position) const;

  std::uint64_t samples_;
  OrderOptions options_;
  std::uint64_t key_;
  Permutation permutation_;  // of blocks or of samples
  // Only the last block may be short. Where the permutation puts it decides where windows begin.
  std::uint64_t short_block_rows_ = 0;
  std::uint64_t short_block_position_ = 0;
};

/// Random choices that depend on (seed, epoch, sample) alone, whoever asks and when.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample);
  /// The next of this sample's numbers, uniform in [0, end).  REQUIRES: end > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t end);

 private:
  std::uint64_t state_;
};

/// Where a run stands: enough to go on with any number of ranks, any batch size, any threads.
struct OrderState {
  std::uint64_t samples = 0;  // of the dataset, to tell another one
  OrderOptions order;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // all positions before it were handed out, in all ranks together

  /// One line of JSON, to be kept with a checkpoint.
  [[nodiscard]] std::string to_json() const;
  /// Throws InvalidArgument.
  [[nodiscard]] static OrderState from_json(std::string_view text);
  bool operator==(const OrderState&) const = default;
};

/// What becomes of the samples at the end of an epoch that do not fill a batch on every rank.
enum class Tail {
  kDrop,  // they are left out
  kPad,   // the epoch's first samples fill up
  kKeep,  // batches are shorter, and some ranks may have fewer
};

/// "drop", "pad", "keep".
[[nodiscard]] std::string_view name(Tail tail);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] Tail parse_tail(std::string_view name);

/// Which positions a rank takes at which step, from `position` to the end of the epoch.
///
/// Step t of all ranks together is [position + t*W*b, position + (t+1)*W*b); rank r has the r-th
/// slice of b.
struct RankSlices {
  std::uint64_t samples = 0;
  std::uint64_t position = 0;  // where the epoch begins or goes on
  std::uint64_t batch_size = 1;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  Tail tail = Tail::kDrop;

  /// Steps that are left; the same on every rank.
  [[nodiscard]] std::uint64_t steps() const;
  /// First position and count of a step. Positions at or above `samples` (with kPad) mean the
  /// epoch's first ones again, modulo `samples`; the count is below batch_size only with kKeep.
  struct Slice {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] Slice slice(std::uint64_t step) const;
  /// The state's position once `step` steps were returned.
  [[nodiscard]] std::uint64_t position_after(std::uint64_t step) const;
};

}  // namespace precache
