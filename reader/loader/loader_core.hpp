// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/os/fork.hpp"
#include "precache/reader/loader.hpp"
#include "reader/loader/augment/epoch_passes.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/epoch_order.hpp"

namespace precache {

/// The implementation of a LoaderBase, which documents the functions. Unlike there, state() after
/// the last batch of an epoch still belongs to that epoch, and resume() may go there.
class LoaderCore {
 public:
  explicit LoaderCore(const LoaderOptions& options)
      : slices_{0, 0, options.batch_size, options.rank, options.world_size, options.last_batch} {}
  LoaderCore(const LoaderCore&) = delete;
  LoaderCore& operator=(const LoaderCore&) = delete;
  virtual ~LoaderCore() = default;

  /// False in a forked process: it has none of the threads, and its copies of the locks may be
  /// held.
  [[nodiscard]] bool is_of_this_process() const { return generation_ == fork_generation(); }

  [[nodiscard]] virtual bool wait_for(std::chrono::nanoseconds time) = 0;
  [[nodiscard]] virtual std::uint64_t batches_per_epoch() const = 0;
  [[nodiscard]] virtual std::uint64_t batches_left() const = 0;
  [[nodiscard]] virtual OrderState state() const = 0;
  virtual void resume(const OrderState& state) = 0;
  /// Whether no rank has a batch after `state`, which is in the middle or at the end of its epoch.
  [[nodiscard]] bool is_at_end(const OrderState& state) const {
    RankSlices slices = slices_;
    slices.samples = state.samples;
    slices.position = state.position;
    return state.position != 0 && slices.steps() == 0;
  }
  /// True if a call of next(), this one or a later one, will throw.
  [[nodiscard]] virtual bool has_failed() const = 0;
  /// The sizes of all epochs.
  [[nodiscard]] virtual const EpochPasses& passes() const = 0;
  /// `epoch`: none for the next one of which no batch was returned.
  virtual std::uint64_t set_size(ImageSize size, std::size_t view,
                                 std::optional<std::uint64_t> epoch) = 0;
  [[nodiscard]] virtual std::vector<OperationDraw> draw(const SampleKey& key) const = 0;
  [[nodiscard]] std::vector<std::string> warnings() const {
    return passes().at(0)->view(0).pass().warnings();
  }

 protected:
  /// The epoch of a set_size() that names none.
  [[nodiscard]] static std::uint64_t next_begun(const OrderState& now) {
    return now.epoch + (now.position == 0 ? 0 : 1);
  }

 private:
  const RankSlices slices_;  // without samples and position
  const std::uint64_t generation_ = fork_generation();
};

}  // namespace precache
