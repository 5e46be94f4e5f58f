// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

/// The order is a pure function of (samples, these options, seed, epoch), which docs/reader.md
/// specifies.
struct OrderOptions {
  Shuffle shuffle = Shuffle::kNone;
  std::uint64_t block_rows = 64;     // for kBlock: samples that are stored and read together
  std::uint64_t window_blocks = 64;  // for kBlock: blocks that are mixed with each other
  bool operator==(const OrderOptions&) const = default;
};

/// What happens to the samples at the end of an epoch that do not fill a batch on every rank.
enum class LastBatch {
  kDrop,  // they are left out
  kPad,   // the epoch's first samples fill up the batch
  kKeep,  // the batch is shorter, and some ranks may have one batch less
};

/// "drop", "pad", "keep".
[[nodiscard]] std::string_view name(LastBatch last_batch);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] LastBatch parse_last_batch(std::string_view name);

/// Where a run stands: enough to continue with any number of ranks, any batch size, any threads.
struct OrderState {
  std::uint64_t samples = 0;  // in the dataset, to recognise another one
  OrderOptions order;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // all positions before it were handed out, in all ranks together

  /// One line of JSON, to be kept with a checkpoint.
  [[nodiscard]] std::string to_json() const;
  /// Throws InvalidArgument if `text` is not what to_json() returns.
  [[nodiscard]] static OrderState from_json(std::string_view text);
  bool operator==(const OrderState&) const = default;
};

}  // namespace precache
