// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "reader/device/augment_body.hpp"
#include "reader/device/draw_body.hpp"
#include "reader/device/erase_numbers_body.hpp"
#include "reader/device/pixel_body.hpp"
#include "reader/device/resident_body.hpp"
#include "tests/support/fake_cudart/fake_cudart.hpp"

namespace precache::test {

/// The view of a kernel of memory that it does not always have.
template <typename T>
const T* seen_if(const T* pointer, std::size_t count) {
  return pointer == nullptr ? nullptr : fake_cudart::read_view(pointer, count);
}

/// True if the fake has noted a fault.
template <typename T>
bool is_missing(const T* asked, const T* seen) {
  return asked != nullptr && seen == nullptr;
}

/// Runs a launch block by block, thread by thread; each block first copies the table.
inline void run_blocks(dim3 grid, dim3 block, const device::PixelWork& work) {
  device::ThreadPlace place{0, 0, 0, grid.x, grid.y, block.x};
  for (place.block_y = 0; place.block_y < grid.y; ++place.block_y) {
    for (place.block_x = 0; place.block_x < grid.x; ++place.block_x) {
      std::vector<std::uint32_t> table(device::kTableEntries, 0xa5a5a5a5);
      for (place.thread = 0; place.thread < block.x; ++place.thread) {
        device::copy_table(work, place, table.data());
      }
      for (place.thread = 0; place.thread < block.x; ++place.thread) {
        device::run_thread(work, table.data(), device::share_of(place));
      }
    }
  }
}

/// Runs the kernel with the dimensions of its launch, on memory of the fake.
inline void run_kernel(dim3 grid, dim3 block, const device::PixelWork& work) {
  using device::element_bytes;
  const std::size_t in_bytes = std::size_t{work.in_samples} * work.channels * work.in_height *
                               work.in_width * element_bytes(work.in_type);
  const std::size_t out_bytes = std::size_t{work.samples} * work.channels * work.height *
                                work.width * element_bytes(work.out_type);
  device::PixelWork seen = work;
  seen.in = fake_cudart::read_view(work.in, in_bytes);
  seen.out = fake_cudart::write_view(work.out, out_bytes);
  seen.choices = seen_if(work.choices, work.samples);
  seen.rows = seen_if(work.rows, work.samples);
  seen.labels_in = seen_if(work.labels_in, work.stored_labels);
  seen.label_rows = seen_if(work.label_rows, work.samples);
  if (work.labels_out != nullptr) {
    seen.labels_out = fake_cudart::write_view(work.labels_out, work.samples);
  }
  if (seen.in == nullptr || seen.out == nullptr || is_missing(work.choices, seen.choices) ||
      is_missing(work.rows, seen.rows) || is_missing(work.labels_in, seen.labels_in) ||
      is_missing(work.label_rows, seen.label_rows) ||
      is_missing(work.labels_out, seen.labels_out)) {
    return;  // the fake has noted a fault
  }
  run_blocks(grid, block, seen);
}

/// The same for the kernel that chooses samples.
inline void run_choice(dim3 grid, dim3 block, const device::ResidentWork& work) {
  device::ResidentWork seen = work;
  seen.rows = fake_cudart::write_view(work.rows, work.count);
  if (work.choices != nullptr) {
    seen.choices = fake_cudart::write_view(work.choices, work.count);
  }
  if (work.keys != nullptr) seen.keys = fake_cudart::write_view(work.keys, work.count);
  seen.originals = seen_if(work.originals, work.samples);
  if (work.subset != nullptr) {
    seen.subset = fake_cudart::read_view(work.subset, work.order.samples);
  }
  if (work.weights.sums != nullptr) {
    seen.weights.sums = fake_cudart::read_view(work.weights.sums, work.weights.count);
  }
  if (seen.rows == nullptr || is_missing(work.choices, seen.choices) ||
      is_missing(work.keys, seen.keys) || is_missing(work.originals, seen.originals) ||
      (seen.subset == nullptr) != (work.subset == nullptr) ||
      (seen.weights.sums == nullptr) != (work.weights.sums == nullptr)) {
    return;  // the fake has noted a fault
  }
  for (std::uint32_t i = 0; i < grid.x * block.x; ++i) {
    device::choose_rows(seen, i, grid.x * block.x);
  }
}

/// False if the fake has noted a fault.
inline bool see_list(device::StepList& list) {
  const device::StepList asked = list;
  list.steps = seen_if(asked.steps, asked.count);
  list.values = seen_if(asked.values, asked.value_count);
  return list.steps != nullptr && !is_missing(asked.values, list.values);
}

/// The kernel that draws for lists of operations.
inline void run_draws(dim3 grid, dim3 block, const device::DrawWork& work) {
  device::DrawWork seen = work;
  seen.rows = fake_cudart::read_view(work.rows, work.samples);
  seen.draws = fake_cudart::write_view(work.draws, std::size_t{work.samples} * work.list.count);
  if (!see_list(seen.list) || seen.rows == nullptr || seen.draws == nullptr) return;
  if (std::uint64_t{grid.x} * block.x < work.samples) throw std::logic_error("too few threads");
  for (std::uint32_t row = 0; row < work.samples; ++row) device::draw_row(seen, row);
}

/// The kernel that makes the pictures of lists, block by block.
inline void run_pictures(dim3 grid, dim3 /* block */, const device::PictureWork& work) {
  const std::size_t pixel_bytes = std::size_t{work.channels} * work.element_bytes;
  device::PictureWork seen = work;
  seen.in = fake_cudart::read_view(
      work.in, std::size_t{work.in_samples} * work.in_height * work.in_width * pixel_bytes);
  seen.out = fake_cudart::write_view(
      work.out, std::size_t{work.samples} * work.height * work.width * pixel_bytes);
  seen.rows = seen_if(work.rows, work.samples);
  seen.draws = fake_cudart::read_view(work.draws, std::size_t{work.samples} * work.list.count);
  seen.scratch.first = fake_cudart::write_view(
      work.scratch.first, std::size_t{work.scratch.blocks} * work.scratch.block_bytes);
  if (!see_list(seen.list) || seen.in == nullptr || seen.out == nullptr ||
      is_missing(work.rows, seen.rows) || seen.draws == nullptr || seen.scratch.first == nullptr) {
    return;
  }
  device::BlockMemory memory;
  std::memset(&memory, 0xa5, sizeof memory);
  if (grid.x > work.scratch.blocks) throw std::logic_error("too many blocks for the scratch");
  for (std::uint32_t place = 0; place < grid.x; ++place) {
    for (std::uint32_t row = place; row < work.samples; row += grid.x) {
      device::make_picture(seen, device::Block(memory), row, place);
    }
  }
}

/// The kernel that erases numbers.
inline void run_erasing(dim3 /* grid */, dim3 /* block */, const device::EraseWork& work) {
  device::EraseWork seen = work;
  seen.draws = fake_cudart::read_view(work.draws, std::size_t{work.samples} * work.list.count);
  seen.tensors = fake_cudart::write_view(work.tensors, std::size_t{work.samples} * work.channels *
                                                           work.height * work.width *
                                                           device::element_bytes(work.type));
  if (!see_list(seen.list) || seen.draws == nullptr || seen.tensors == nullptr) return;
  device::BlockMemory memory;
  for (std::uint32_t row = 0; row < work.samples; ++row) {
    device::erase_row(seen, device::Block(memory), row);
  }
}

/// Gives the fake all kernels of the library.
inline void register_kernels() {
  using fake_cudart::register_kernel;
  register_kernel<device::PixelWork>("precache_pixel_kernel", run_kernel);
  register_kernel<device::ResidentWork>("precache_resident_kernel", run_choice);
  register_kernel<device::DrawWork>("precache_draw_kernel", run_draws);
  register_kernel<device::PictureWork>("precache_picture_kernel", run_pictures);
  register_kernel<device::EraseWork>("precache_erase_kernel", run_erasing);
}

}  // namespace precache::test
