// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_run.hpp"

#include <oneapi/tbb/cache_aligned_allocator.h>
#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "convert/job/same_source.hpp"
#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// Syncs finished shards on its own thread, which mostly waits. At most two shards are queued; the
/// workers that complete more wait, so that memory holds little unwritten data.
class Committer {
 public:
  explicit Committer(const ShardCalls& calls) : calls_(calls) {
    queue_.set_capacity(2);
    thread_ = std::thread([this] { run(); });
  }
  ~Committer() { stop(); }

  void submit(const PendingShard& shard, std::shared_ptr<ShardBuilder> builder) {
    if (failed_) std::rethrow_exception(error_);
    queue_.push({&shard, std::move(builder)});
  }

  /// Waits for all that was submitted.
  void finish() {
    stop();
    if (failed_) std::rethrow_exception(error_);
  }

 private:
  using Job = std::pair<const PendingShard*, std::shared_ptr<ShardBuilder>>;

  void stop() {
    if (!thread_.joinable()) return;
    queue_.push({nullptr, nullptr});  // the last
    thread_.join();
  }

  void run() {
    for (;;) {
      Job job;
      queue_.pop(job);
      const auto& [shard, builder] = job;
      if (shard == nullptr) return;
      if (failed_) continue;
      try {
        calls_.done(*shard, builder->commit([&, to = shard](const ShardResult& result) {
          calls_.save(*to, result);
        }));
      } catch (...) {
        error_ = std::current_exception();
        failed_ = true;
      }
    }
  }

  const ShardCalls& calls_;
  tbb::concurrent_bounded_queue<Job> queue_;
  std::exception_ptr error_;  // set before failed_
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

class Run {
 public:
  Run(const ShardRunInput& input, const std::vector<PendingShard>& pending, JobProgress& progress,
      const ShardCalls& calls)
      : input_(input),
        pending_(pending),
        progress_(progress),
        calls_(calls),
        shards_(pending.size()),
        committer_(calls) {
    std::uint64_t records = 0;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      shards_[i].begin = records;
      shards_[i].records = input.plan.shard_records(pending[i].number);
      records += shards_[i].records;
    }
    rejected_ = input.rejected_before;
  }

  ShardRunOutcome run() {
    for (std::size_t i = 0; i < pending_.size() && !stopping(); ++i) {
      // No record of an empty shard will ever be its last.
      if (shards_[i].records == 0 && open(i)) complete(i);
    }
    tbb::parallel_for(
        std::size_t{0}, workers_, std::size_t{1}, [&](std::size_t worker) { work(worker); },
        tbb::simple_partitioner());
    committer_.finish();
    ShardRunOutcome outcome;
    for (auto& [position, skipped] : skipped_) outcome.skipped.push_back(std::move(skipped));
    outcome.converted = converted_;
    outcome.too_many_rejections = too_many();
    return outcome;
  }

 private:
  struct RunningShard {
    std::uint64_t begin = 0;  // counted in records of this run
    std::uint64_t records = 0;
    std::atomic<std::uint64_t> next{0};
    std::once_flag opened;
    bool is_made_by_other = false;
    std::shared_ptr<ShardBuilder> builder;
  };

  [[nodiscard]] bool too_many() const { return rejected_ > input_.allowed_rejections; }
  [[nodiscard]] bool stopping() const {
    return progress_.stop || too_many() || tbb::is_current_task_group_canceling();
  }

  [[nodiscard]] PlannedRecord place(std::size_t index, std::uint64_t slot) const {
    const std::uint64_t shard = pending_[index].number;
    return {shard, slot, input_.plan.sample(shard, slot)};
  }

  void work(std::size_t worker) {
    const auto maker = input_.samples.tensor_maker();
    // Aligned like the records in a file.
    std::vector<std::byte, tbb::cache_aligned_allocator<std::byte>> buffer(
        input_.framing.record_bytes());
    std::vector<std::byte> values(input_.framing.values_bytes());
    const std::size_t step =
        std::clamp<std::size_t>(shards_.size(), 1, std::min(input_.shards_at_once, workers_));
    for (std::size_t i = worker % step; i < shards_.size(); i += step) {
      work_on(i, maker, buffer, values);
    }
    // Other workers may not be done yet.
    for (std::size_t i = 0; i < shards_.size(); ++i) work_on(i, maker, buffer, values);
  }

  /// Makes records of the shard until the workers together have made all.
  void work_on(std::size_t index, const TensorMaker& maker, std::span<std::byte> record,
               std::span<std::byte> values) {
    RunningShard& shard = shards_[index];
    if (stopping() || shard.next >= shard.records || !open(index)) return;
    while (!stopping()) {
      const std::uint64_t slot = shard.next.fetch_add(1);
      if (slot >= shard.records) return;
      if (convert(index, slot, maker, record, values)) complete(index);
      ++progress_.samples_done;
    }
  }

  /// False if the shard is left out of this run.
  bool open(std::size_t index) {
    RunningShard& shard = shards_[index];
    std::call_once(shard.opened, [&] {
      const PendingShard& pending = pending_[index];
      if (!calls_.begin(pending)) {
        shard.is_made_by_other = true;
        progress_.samples_planned -= shard.records;
        return;
      }
      shard.builder = std::make_shared<ShardBuilder>(input_.framing, pending.temporary,
                                                     pending.final_path, shard.records);
    });
    return !shard.is_made_by_other;
  }

  /// True if this was the last record of its shard.
  bool convert(std::size_t index, std::uint64_t slot, const TensorMaker& maker,
               std::span<std::byte> record, std::span<std::byte> values) {
    const PlannedRecord planned = place(index, slot);
    ShardBuilder& shard = *shards_[index].builder;
    const auto tensor = record.subspan(input_.framing.tensor_offset(), input_.tensor_bytes);
    const MadeTensor made = maker(planned, tensor, values);
    shard.note_content(content_term(planned.sample, made.source_crc));
    if (made.rejection) {
      ++progress_.samples_skipped;
      SkippedSample skipped{input_.samples.origin(planned), made.rejection->stage,
                            made.rejection->reason};
      {
        const std::scoped_lock lock(mutex_);
        skipped_.emplace(shards_[index].begin + slot, skipped);
      }
      ++rejected_;
      return shard.reject(slot, std::move(skipped));
    }
    SampleName name = input_.samples.name(planned);
    name.values = values;
    const std::uint32_t crc = input_.framing.frame(
        record, name, made.tensor_crc ? *made.tensor_crc : crc32c::value(tensor));
    if (made.turned) shard.note_turned();
    const bool last = shard.write(slot, record, crc, made.warned, values);
    progress_.bytes_written += record.size();
    ++converted_;
    return last;
  }

  void complete(std::size_t index) {
    const PendingShard& pending = pending_[index];
    const auto name_of_slot = [&](std::uint64_t slot) {
      return input_.samples.name(place(index, slot));
    };
    shards_[index].builder->complete(name_of_slot, input_.plan.keeps_order());
    committer_.submit(pending, std::move(shards_[index].builder));
  }

  const ShardRunInput& input_;
  const std::vector<PendingShard>& pending_;
  JobProgress& progress_;
  const ShardCalls& calls_;
  std::vector<RunningShard> shards_;
  const std::size_t workers_ = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
  std::atomic<std::uint64_t> converted_{0};
  std::atomic<std::uint64_t> rejected_{0};
  std::mutex mutex_;
  std::map<std::uint64_t, SkippedSample> skipped_;  // by position in the plan
  Committer committer_;
};

}  // namespace

ShardRunOutcome run_shards(const ShardRunInput& input, const std::vector<PendingShard>& pending,
                           JobProgress& progress, const ShardCalls& calls) {
  return Run(input, pending, progress, calls).run();
}

}  // namespace precache
