// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace precache {

/// The sequence of the samples in an epoch.
enum class Shuffle {
  kNone,      // the order in which they are stored
  kBlock,     // blocks of neighbours in random order, mixed within a window: reads large ranges
  kFull,      // every sample can be anywhere
  kWeighted,  // drawn with replacement, by the weights of LoaderOptions
};

/// "none", "block", "full", "weighted".
[[nodiscard]] std::string_view name(Shuffle shuffle);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] Shuffle parse_shuffle(std::string_view name);

/// How to shuffle. The order is a pure function of (samples, these options, seed, epoch);
/// docs/reader.md specifies it.
struct OrderOptions {
  Shuffle shuffle = Shuffle::kNone;
  std::uint64_t block_rows = 64;     // for kBlock: samples that are stored and read together
  std::uint64_t window_blocks = 64;  // for kBlock: blocks that are mixed with each other
  bool operator==(const OrderOptions&) const = default;
};

/// The treatment of samples at the end of an epoch that do not fill a batch on every rank.
enum class LastBatch {
  kDrop,  // they are left out
  kPad,   // the epoch's first samples fill up the batch
  kKeep,  // the ranks share them: batches are shorter, and differ by at most one sample. If there
          // are fewer samples than ranks, some ranks have one batch less
  kEven,  // the same, but the epoch's first samples make the batches of all ranks equal
};

/// "drop", "pad", "keep", "even".
[[nodiscard]] std::string_view name(LastBatch last_batch);
/// Throws InvalidArgument for an unknown name.
[[nodiscard]] LastBatch parse_last_batch(std::string_view name);

/// The progress of a run: enough to resume it with any number of ranks, batch size and threads.
struct OrderState {
  std::uint64_t samples = 0;  // of the dataset; another dataset is refused by this number
  OrderOptions order;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // positions before it were returned, over all ranks

  /// The beginning of the next epoch.
  [[nodiscard]] OrderState next_epoch() const { return {samples, order, seed, epoch + 1, 0}; }

  /// One line of JSON, to store with a checkpoint.
  [[nodiscard]] std::string to_json() const;
  /// Throws InvalidArgument if `text` is not the JSON of a state.
  [[nodiscard]] static OrderState from_json(std::string_view text);
  bool operator==(const OrderState&) const = default;
};

}  // namespace precache
