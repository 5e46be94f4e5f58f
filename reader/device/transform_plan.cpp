// SPDX-License-Identifier: Apache-2.0
#include "reader/device/transform_plan.hpp"

#include <algorithm>
#include <utility>

#include "formats/bytes/checked_math.hpp"
#include "reader/device/augment_kernel.hpp"
#include "reader/device/device_steps.hpp"
#include "reader/device/pixel_kernel.hpp"
#include "reader/device/pixel_launch.hpp"
#include "reader/device/resize_body.hpp"

namespace precache::device {
namespace {

constexpr std::uint64_t kAlignment = TransformPlan::kAlignment;
// Enough blocks for today's largest GPUs, unless pictures are large.
constexpr std::uint64_t kMostBlocks = 256;
constexpr std::uint64_t kMostScratchBytes = 256 << 20;

template <typename T>
DeviceMemory uploaded(const std::vector<T>& values, int device) {
  if (values.empty()) return {};
  const std::size_t bytes = values.size() * sizeof(T);
  auto memory = allocate_device(device, bytes);
  check(cudaMemcpy(memory.get(), values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy",
        device);
  return memory;
}

std::uint64_t pixels_of(std::uint32_t channels, std::uint32_t height, std::uint32_t width) {
  return std::uint64_t{channels} * height * width;
}

/// The scratch of one block, for all steps.
struct ScratchNeeds {
  std::uint64_t picture = 0;
  std::uint64_t pass = 0;
  std::uint64_t taps = 0;

  void add(const DeviceStep& step, std::uint32_t channels) {
    picture = std::max({picture, pixels_of(channels, step.in_height, step.in_width),
                        pixels_of(channels, step.height, step.width)});
    // The sources of columns and rows, for affine maps.
    taps = std::max(taps, (std::uint64_t{step.in_width} + step.in_height) * sizeof(std::int32_t));
    if (step.kind != StepKind::kRandomResizedCrop && step.kind != StepKind::kResize) return;
    pass = std::max({pass, pixels_of(channels, step.height, step.in_width),
                     pixels_of(channels, step.in_height, step.width)});
    taps = std::max(
        taps, (tap_numbers(step.in_width, step.width) + tap_numbers(step.in_height, step.height)) *
                  sizeof(std::int32_t));
  }
  void place(Scratch& scratch) const {
    scratch.second_at = round_up(picture, kAlignment);
    scratch.pass_at = 2 * scratch.second_at;
    scratch.taps_at = scratch.pass_at + round_up(pass, kAlignment);
    scratch.block_bytes = scratch.taps_at + round_up(taps, kAlignment);
  }
};

}  // namespace

TransformPlan::TransformPlan(const TensorSpec& stored, std::shared_ptr<const ViewPasses> passes,
                             std::uint64_t largest_batch, int device, Copies copies)
    : passes_(std::move(passes)),
      stored_(stored),
      device_(device),
      is_copy_(copies == Copies::kByCaller && passes_->size() == 1 && passes_->view(0).is_copy()) {
  if (is_copy_) return;
  for (std::size_t i = 0; i < passes_->size(); ++i) {
    const ViewPass& pass = passes_->view(i);
    View& view = views_.emplace_back();
    has_lists_ = has_lists_ || pass.has_list();
    TensorSpec from = stored;
    if (!pass.steps().empty()) {
      // The pictures that the steps leave.
      from.layout = Layout::kChw;
      from.height = pass.result().height;
      from.width = pass.result().width;
      add_list(view, pass);
      picture_bytes_ = std::max<std::uint64_t>(picture_bytes_, from.size_bytes());
    }
    view.pixels = pixel_work(from, pass.pass(), device);
  }
  allocate(largest_batch);
}

void TransformPlan::add_list(View& view, const ViewPass& pass) {
  const HostSteps host = device_steps(pass.steps());
  view.steps = uploaded(host.steps, device_);
  view.values = uploaded(host.values, device_);
  view.list = {reinterpret_cast<const DeviceStep*>(view.steps.get()),
               static_cast<std::uint32_t>(host.steps.size()),
               reinterpret_cast<const double*>(view.values.get()),
               static_cast<std::uint32_t>(host.values.size())};
  PictureWork& work = view.pictures;
  work.channels = stored_.channels;
  work.in_height = stored_.height;
  work.in_width = stored_.width;
  work.element_bytes = element_bytes(stored_.dtype);
  work.in_hwc = stored_.layout == Layout::kHwc;
  work.list = view.list;
  work.height = pass.result().height;
  work.width = pass.result().width;
  ScratchNeeds needs;
  for (const DeviceStep& step : host.steps) {
    needs.add(step, stored_.channels);
    view.erases_numbers = view.erases_numbers || step.erases_numbers;
  }
  needs.place(work.scratch);
  draws_ = std::max<std::uint64_t>(draws_, host.steps.size());
}

void TransformPlan::allocate(std::uint64_t largest_batch) {
  if (picture_bytes_ == 0) return;
  draw_memory_ = allocate_device(device_, checked_mul(largest_batch, draws_ * sizeof(StepDraw)));
  picture_memory_ = allocate_device(device_, checked_mul(largest_batch, picture_bytes_));
  std::uint64_t block_bytes = 0;
  for (const View& view : views_) {
    block_bytes = std::max(block_bytes, view.pictures.scratch.block_bytes);
  }
  const std::uint64_t most = std::min(largest_batch, kMostBlocks);
  const std::uint64_t blocks = std::clamp<std::uint64_t>(kMostScratchBytes / block_bytes, 1, most);
  scratch_memory_ = allocate_device(device_, blocks * block_bytes);
  for (View& view : views_) {
    view.pictures.scratch.first = scratch_memory_.get();
    view.pictures.scratch.blocks = static_cast<std::uint32_t>(blocks);
    view.pictures.draws = reinterpret_cast<const StepDraw*>(draw_memory_.get());
    view.pictures.out = picture_memory_.get();
  }
}

std::uint64_t TransformPlan::view_at(std::size_t view, std::uint64_t rows) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < view; ++i) {
    const std::uint64_t row_bytes = passes_->view(i).result().size_bytes();
    bytes = checked_add(bytes, round_up(checked_mul(rows, row_bytes), kAlignment));
  }
  return bytes;
}

std::uint64_t TransformPlan::labels_at(std::uint64_t rows) const {
  return view_at(passes_->size(), rows);
}

void TransformPlan::run_list(const View& view, std::uint32_t number, const Input& input,
                             cudaStream_t stream) const {
  DrawWork draws;
  draws.list = view.list;
  draws.rows = input.keys;
  draws.samples = input.samples;
  draws.seed = input.seed;
  draws.epoch = input.epoch;
  draws.view = number;
  draws.draws = reinterpret_cast<StepDraw*>(draw_memory_.get());
  check(launch_draws(draws, stream), "cudaLaunchKernel", device_);
  PictureWork pictures = view.pictures;
  pictures.in = input.tensors;
  pictures.in_samples = input.stored;
  pictures.rows = input.rows;
  pictures.samples = input.samples;
  check(launch_pictures(pictures, stream), "cudaLaunchKernel", device_);
}

void TransformPlan::launch(const Input& input, std::byte* out, cudaStream_t stream) const {
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const View& view = views_[i];
    PixelWork pixels = view.pixels;
    if (view.steps != nullptr) {
      run_list(view, static_cast<std::uint32_t>(i), input, stream);
      pixels.in = picture_memory_.get();
      pixels.in_samples = input.samples;
    } else {
      pixels.in = input.tensors;
      pixels.in_samples = input.stored;
      pixels.rows = input.rows;
      pixels.choices = input.choices;
    }
    pixels.samples = input.samples;
    pixels.out = out + view_at(i, input.samples);
    if (i == 0) {
      pixels.labels_in = input.labels;
      pixels.stored_labels = input.stored;
      pixels.label_rows = input.rows;
      pixels.labels_out = reinterpret_cast<std::int64_t*>(out + labels_at(input.samples));
    }
    check(launch_pixels(pixels, stream), "cudaLaunchKernel", device_);
    if (view.erases_numbers) erase_numbers(view, pixels, stream);
  }
}

void TransformPlan::erase_numbers(const View& view, const PixelWork& pixels,
                                  cudaStream_t stream) const {
  EraseWork work;
  work.list = view.list;
  work.draws = view.pictures.draws;
  work.tensors = pixels.out;
  work.samples = pixels.samples;
  work.channels = pixels.channels;
  work.height = pixels.height;
  work.width = pixels.width;
  work.hwc = pixels.out_hwc;
  work.type = pixels.out_type;
  check(launch_erasing(work, stream), "cudaLaunchKernel", device_);
}

}  // namespace precache::device
