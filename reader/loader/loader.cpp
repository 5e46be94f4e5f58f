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
        "the consumer waits longer than the workers ({} and {}): give the loader more threads, "
        "or do less per sample",
        text(consumer_waited), text(workers_waited));
  }
  return fmt::format(
      "the workers wait longer than the consumer ({} and {}): loading is not the bottleneck",
      text(workers_waited), text(consumer_waited));
}

LoaderBase::LoaderBase(std::unique_ptr<LoaderCore> core) : core_(std::move(core)) {}
LoaderBase::LoaderBase(LoaderBase&&) noexcept = default;

LoaderBase& LoaderBase::operator=(LoaderBase&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}

LoaderBase::~LoaderBase() {
  // A forked process has no threads to join and no CUDA.
  if (core_ != nullptr && !core_->is_of_this_process()) (void)core_.release();
}

LoaderCore& LoaderBase::core() const {
  if (!core_->is_of_this_process()) {
    throw InvalidArgument("this loader was created before fork() and cannot be used in the child",
                          "Create the loader in the process that uses it.");
  }
  return *core_;
}

bool LoaderBase::wait_for(std::chrono::nanoseconds time) { return core().wait_for(time); }
std::uint64_t LoaderBase::batches_per_epoch() const { return core().batches_per_epoch(); }
std::uint64_t LoaderBase::batches_left() const { return core().batches_left(); }
std::uint64_t LoaderBase::epoch() const { return core().state().epoch; }
TensorSpec LoaderBase::spec() const { return view_spec(0); }
std::size_t LoaderBase::views() const { return core().passes().views(); }
std::vector<std::string> LoaderBase::warnings() const { return core().warnings(); }

TensorSpec LoaderBase::view_spec(std::size_t view) const {
  check_view(view);
  return core().passes().at(state().epoch)->view(view).result();
}

std::uint64_t LoaderBase::set_size(ImageSize size, std::size_t view,
                                   std::optional<std::uint64_t> epoch) {
  check_view(view);
  return core().set_size(size, view, epoch);
}

std::vector<OperationDraw> LoaderBase::draw(std::uint64_t sample, std::uint64_t epoch,
                                            std::size_t view, std::uint32_t repeat) const {
  check_view(view);
  return core().draw({state().seed, epoch, sample, repeat, static_cast<std::uint32_t>(view)});
}

void LoaderBase::check_view(std::size_t view) const {
  if (view < views()) return;
  throw InvalidArgument(
      fmt::format("`view` must be below {}, the number of views, got {}", views(), view));
}

OrderState LoaderBase::state() const {
  const OrderState state = core().state();
  return core().is_at_end(state) ? state.next_epoch() : state;
}

void LoaderBase::resume(const OrderState& state) {
  core().resume(state);
  // Such a state may come from a loader with larger batches, or from version 0.1.
  if (core().is_at_end(state)) core().resume(state.next_epoch());
}

void LoaderBase::set_epoch(std::uint64_t epoch) {
  OrderState state = core().state();
  // Batches that were filled ahead can stay, unless one failed: the cause may be gone.
  if (state.epoch == epoch && state.position == 0 && !core().has_failed()) return;
  state.epoch = epoch;
  state.position = 0;
  core().resume(state);
}

Loader::Loader(const Dataset& dataset, const LoaderOptions& options)
    : LoaderBase((static_cast<void>(dataset.spec()),  // throws Unsupported if there are no tensors
                  std::make_unique<BatchPipeline>(dataset.shards_, options, BatchPlacement()))) {}

std::optional<Batch> Loader::next() { return static_cast<BatchPipeline&>(core()).next(); }
std::span<const NamedColumn> Loader::columns() const& {
  return static_cast<BatchPipeline&>(core()).columns();
}
LoaderStats Loader::stats() const { return static_cast<BatchPipeline&>(core()).stats(); }

}  // namespace precache
