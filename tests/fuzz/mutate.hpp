// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace precache::fuzz {

/// Mutates; then `repair` sets right the checksums over what changed, but for one time in eight.
/// Otherwise nearly every input would be refused for those alone.
template <typename Repair>
std::size_t mutate_and_repair(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                              const Repair& repair) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 != 0) repair(std::span(data, size));
  return size;
}

}  // namespace precache::fuzz
