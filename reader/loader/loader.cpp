// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/loader.hpp"

#include <fmt/format.h>

#include <utility>

#include "precache/formats/error.hpp"
#include "reader/loader/batch_pipeline.hpp"

namespace precache {

std::string LoaderStats::bottleneck() const {
  const auto text = [](std::chrono::nanoseconds time) {
    return fmt::format("{:.3f} s", std::chrono::duration<double>(time).count());
  };
  if (consumer_waited > workers_waited) {
    return fmt::format(
        "the consumer waits ({} against {} of the workers): give the loader more threads, "
        "or do less per sample",
        text(consumer_waited), text(workers_waited));
  }
  return fmt::format(
      "the workers wait ({} against {} of the consumer): loading is not the bottleneck",
      text(workers_waited), text(consumer_waited));
}

Loader::Loader(Dataset dataset, const LoaderOptions& options) {
  static_cast<void>(dataset.spec());  // throws Unsupported if there are no tensors
  pipeline_ = std::make_unique<BatchPipeline>(dataset.shards_, options, BatchPlacement());
}
Loader::Loader(Loader&&) noexcept = default;

Loader& Loader::operator=(Loader&& other) noexcept {
  std::swap(pipeline_, other.pipeline_);
  return *this;
}

Loader::~Loader() {
  // Threads that are not there cannot be joined.
  if (pipeline_ != nullptr && !pipeline_->is_of_this_process()) (void)pipeline_.release();
}

BatchPipeline& Loader::pipeline() const {
  if (!pipeline_->is_of_this_process()) {
    throw InvalidArgument("a loader cannot be used in a process that was forked since it was made",
                          "Make the loader in the process that uses it.");
  }
  return *pipeline_;
}

std::optional<Batch> Loader::next() { return pipeline().next(); }
bool Loader::wait_for(std::chrono::nanoseconds time) { return pipeline().wait_for(time); }
std::uint64_t Loader::batches_per_epoch() const { return pipeline().batches_per_epoch(); }
std::uint64_t Loader::batches_left() const { return pipeline().batches_left(); }
std::uint64_t Loader::epoch() const { return pipeline().state().epoch; }
void Loader::set_epoch(std::uint64_t epoch) { pipeline().set_epoch(epoch); }
OrderState Loader::state() const { return pipeline().state(); }
void Loader::resume(const OrderState& state) { pipeline().resume(state); }
TensorSpec Loader::spec() const { return pipeline().spec(); }
LoaderStats Loader::stats() const { return pipeline().stats(); }
std::vector<std::string> Loader::warnings() const { return pipeline().warnings(); }

}  // namespace precache
