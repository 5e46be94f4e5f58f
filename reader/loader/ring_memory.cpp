// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/ring_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "formats/bytes/number_text.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

// Products of sizes may exceed 64 bits, and need no exact value here.
using Bytes = double;

Bytes memory_of_machine() {
  static const auto bytes =
      static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::string text(Bytes bytes) {
  constexpr Bytes kMost = 1e18;  // what the text can say
  return size_text(static_cast<std::uint64_t>(std::min(bytes, kMost)));
}

Bytes bytes_of(const ImageShape& shape) {
  return static_cast<Bytes>(shape.channels) * shape.height * shape.width;
}

/// Names the operation or option that determines the size of a view.
std::string source_of_size(const ViewPass& pass, const LoaderOptions& options) {
  if (options.transform.max_size) return "`max_size`";
  const auto& steps = pass.steps();
  const auto last = std::find_if(steps.rbegin(), steps.rend(),
                                 [](const augment::Step& step) { return step.in != step.out; });
  return last != steps.rend() ? last->label : "the dataset";
}

/// Each thread keeps what goes into an operation and what comes out of it.
void check_steps(const ViewPass& pass, unsigned threads) {
  for (const augment::Step& step : pass.steps()) {
    const Bytes needed = threads * (bytes_of(step.in) + bytes_of(step.out));
    if (needed <= memory_of_machine()) continue;
    throw InvalidArgument(
        fmt::format("{} makes images of {}x{}, which take {} in {} threads, but this machine has "
                    "{} of memory",
                    step.label, step.out.height, step.out.width, text(needed), threads,
                    text(memory_of_machine())),
        "Use a smaller size or fewer `threads`.");
  }
}

}  // namespace

std::size_t ring_batch_bytes(const EpochPasses& passes, const LoaderOptions& options,
                             std::uint64_t rows) {
  const ViewPasses& views = *passes.at(0);
  Bytes row_bytes = 0;
  std::size_t largest = 0;
  for (std::size_t view = 0; view < passes.views(); ++view) {
    check_steps(views.view(view), options.threads);
    row_bytes += static_cast<Bytes>(passes.largest_row_bytes(view));
    if (passes.largest_row_bytes(view) > passes.largest_row_bytes(largest)) largest = view;
  }
  const std::size_t batches = options.prefetch + 1;  // one is with the consumer
  const Bytes needed = static_cast<Bytes>(batches) * static_cast<Bytes>(rows) * row_bytes;
  // Batches of unchanged tensors may be views of the shards.
  const bool may_be_views = passes.views() == 1 && views.view(0).is_copy();
  if (needed > memory_of_machine() && !may_be_views) {
    throw InvalidArgument(
        fmt::format("{} batches of {} samples take {}, but this machine has {} of memory; the size "
                    "of the images, {} each, is that of {}",
                    batches, rows, text(needed), text(memory_of_machine()),
                    text(static_cast<Bytes>(passes.largest_row_bytes(largest))),
                    source_of_size(views.view(largest), options)),
        "Use a smaller size, `batch_size` or `prefetch`.");
  }
  return passes.largest_batch_bytes(rows);
}

}  // namespace precache
