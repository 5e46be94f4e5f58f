// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_run.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "convert/job/content_fingerprint.hpp"
#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// Syncs finished shards on a thread of its own, as that is waiting and no work. At most two wait
/// for it, and those who bring more wait themselves, so that memory holds little unwritten data.
class Committer {
 public:
  explicit Committer(const ShardCalls& calls) : calls_(calls), thread_([this] { run(); }) {}
  ~Committer() { stop(); }

  void submit(const PendingShard& shard, std::unique_ptr<ShardBuilder> builder) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.size() < 2 || error_; });
    if (error_) std::rethrow_exception(error_);
    queue_.emplace_back(&shard, std::move(builder));
    changed_.notify_all();
  }

  /// Waits for all that was submitted.
  void finish() {
    stop();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  using Job = std::pair<const PendingShard*, std::unique_ptr<ShardBuilder>>;

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || closed_; });
      if (queue_.empty()) return;
      Job job = std::move(queue_.front());
      queue_.pop_front();
      changed_.notify_all();
      if (error_) continue;
      lock.unlock();
      try {
        const PendingShard& shard = *job.first;
        calls_.done(shard, job.second->commit(
                               [&](const ShardResult& result) { calls_.save(shard, result); }));
      } catch (...) {
        const std::scoped_lock error_lock(mutex_);
        error_ = std::current_exception();
        changed_.notify_all();
      }
    }
  }

  const ShardCalls& calls_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  std::exception_ptr error_;
  bool closed_ = false;
  std::thread thread_;
};

/// One record's bytes, aligned like the records in a file.
class RecordBuffer {
 public:
  explicit RecordBuffer(std::size_t bytes)
      : memory_(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free), bytes_(bytes) {
    if (!memory_) throw std::bad_alloc();
  }
  [[nodiscard]] std::span<std::byte> span() {
    return {static_cast<std::byte*>(memory_.get()), bytes_};
  }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_;
  std::size_t bytes_;
};

class Run {
 public:
  Run(const ShardRunInput& input, const std::vector<PendingShard>& pending, JobProgress& progress,
      const ShardCalls& calls)
      : input_(input),
        pending_(pending),
        progress_(progress),
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
      if (shards_[i].records != 0) continue;
      (void)builder(i);
      complete(i);
    }
    tbb::parallel_for(
        std::size_t{0}, workers_, std::size_t{1}, [&](std::size_t worker) { work(worker); },
        tbb::simple_partitioner());
    committer_.finish();
    ShardRunOutcome outcome;
    std::ranges::sort(skipped_, {}, [](const auto& entry) { return entry.first; });
    for (auto& [position, skipped] : skipped_) outcome.skipped.push_back(std::move(skipped));
    outcome.converted = converted_;
    outcome.too_many_rejections = too_many();
    outcome.stopped = progress_.stop;
    return outcome;
  }

 private:
  struct Shard {
    std::uint64_t begin = 0;  // counted in records of this run
    std::uint64_t records = 0;
    std::atomic<std::uint64_t> next{0};
    std::once_flag opened;
    std::unique_ptr<ShardBuilder> builder;
  };

  [[nodiscard]] bool too_many() const { return rejected_ > input_.allowed_rejections; }
  [[nodiscard]] bool stopping() const {
    return progress_.stop || too_many() || tbb::is_current_task_group_canceling();
  }

  void work(std::size_t worker) {
    const auto maker = input_.samples.tensor_maker();
    RecordBuffer buffer(input_.framing.record_bytes());
    const std::size_t step =
        std::clamp<std::size_t>(shards_.size(), 1, std::min(input_.shards_at_once, workers_));
    for (std::size_t i = worker % step; i < shards_.size(); i += step) {
      work_on(i, *maker, buffer.span());
    }
    // Others may be behind.
    for (std::size_t i = 0; i < shards_.size(); ++i) work_on(i, *maker, buffer.span());
  }

  /// Makes records of the shard until the workers together have made all.
  void work_on(std::size_t index, TensorMaker& maker, std::span<std::byte> record) {
    Shard& shard = shards_[index];
    while (!stopping()) {
      const std::uint64_t slot = shard.next.fetch_add(1);
      if (slot >= shard.records) return;
      if (convert(index, slot, maker, record)) complete(index);
      ++progress_.samples_done;
    }
  }

  ShardBuilder& builder(std::size_t index) {
    Shard& shard = shards_[index];
    std::call_once(shard.opened, [&] {
      const PendingShard& pending = pending_[index];
      shard.builder =
          std::make_unique<ShardBuilder>(input_.framing, pending.temporary, pending.final_path,
                                         input_.plan.shard_records(pending.number));
    });
    return *shard.builder;
  }

  /// True if this was the last record of its shard.
  bool convert(std::size_t index, std::uint64_t slot, TensorMaker& maker,
               std::span<std::byte> record) {
    const std::uint64_t sample = input_.plan.record(pending_[index].number, slot).sample;
    ShardBuilder& shard = builder(index);
    const auto tensor = record.subspan(input_.framing.tensor_offset(), input_.tensor_bytes);
    const auto rejection = maker.make(sample, tensor);
    shard.note_content(content_term(sample, maker.source_crc()));
    if (rejection) {
      ++progress_.samples_skipped;
      SkippedSample skipped{input_.samples.origin(sample), rejection->stage, rejection->reason};
      {
        const std::scoped_lock lock(mutex_);
        skipped_.emplace_back(shards_[index].begin + slot, skipped);
      }
      ++rejected_;
      return shard.reject(slot, std::move(skipped));
    }
    const auto copied_crc = maker.copied_crc();
    const std::uint32_t crc = input_.framing.frame(
        record, input_.samples.name(sample), copied_crc ? *copied_crc : crc32c::value(tensor));
    const bool last = shard.write(slot, record, crc, maker.warned());
    progress_.bytes_written += record.size();
    ++converted_;
    return last;
  }

  void complete(std::size_t index) {
    const PendingShard& pending = pending_[index];
    const auto name_of_slot = [&](std::uint64_t slot) {
      return input_.samples.name(input_.plan.record(pending.number, slot).sample);
    };
    shards_[index].builder->complete(name_of_slot, input_.plan.keeps_order());
    committer_.submit(pending, std::move(shards_[index].builder));
  }

  const ShardRunInput& input_;
  const std::vector<PendingShard>& pending_;
  JobProgress& progress_;
  std::vector<Shard> shards_;
  const std::size_t workers_ = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
  std::atomic<std::uint64_t> converted_{0};
  std::atomic<std::uint64_t> rejected_{0};
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, SkippedSample>> skipped_;
  Committer committer_;
};

}  // namespace

ShardRunOutcome run_shards(const ShardRunInput& input, const std::vector<PendingShard>& pending,
                           JobProgress& progress, const ShardCalls& calls) {
  return Run(input, pending, progress, calls).run();
}

}  // namespace precache
