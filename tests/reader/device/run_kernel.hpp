// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/device/pixel_body.hpp"
#include "reader/device/resident_body.hpp"
#include "tests/support/fake_cudart/fake_cudart.hpp"

namespace precache::test {

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
  seen.choices = fake_cudart::read_view(work.choices, work.samples);
  seen.labels_in = fake_cudart::read_view(work.labels_in, work.in_samples);
  if (work.rows != nullptr) seen.rows = fake_cudart::read_view(work.rows, work.samples);
  seen.labels_out = fake_cudart::write_view(work.labels_out, work.samples);
  if (seen.in == nullptr || seen.out == nullptr || seen.choices == nullptr ||
      seen.labels_in == nullptr || seen.labels_out == nullptr ||
      (work.rows != nullptr && seen.rows == nullptr)) {
    return;  // the fake has noted a fault
  }
  run_blocks(grid, block, seen);
}

/// The same for the kernel that chooses samples.
inline void run_choice(dim3 grid, dim3 block, const device::ResidentWork& work) {
  device::ResidentWork seen = work;
  seen.rows = fake_cudart::write_view(work.rows, work.count);
  seen.choices = fake_cudart::write_view(work.choices, work.count);
  if (work.subset != nullptr) {
    seen.subset = fake_cudart::read_view(work.subset, work.order.samples);
  }
  if (work.weights.sums != nullptr) {
    seen.weights.sums = fake_cudart::read_view(work.weights.sums, work.weights.count);
  }
  if (seen.rows == nullptr || seen.choices == nullptr ||
      (seen.subset == nullptr) != (work.subset == nullptr) ||
      (seen.weights.sums == nullptr) != (work.weights.sums == nullptr)) {
    return;  // the fake has noted a fault
  }
  for (std::uint32_t i = 0; i < grid.x * block.x; ++i) {
    device::choose_rows(seen, i, grid.x * block.x);
  }
}

}  // namespace precache::test
