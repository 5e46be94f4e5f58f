// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace precache::fuzz {

/// Returns a number to replace another: near it, far from it, or at the limit.
inline std::uint64_t other_number(std::uint64_t value, std::minstd_rand& random) {
  const std::array<std::uint64_t, 8> others{value + 1,
                                            value - 1,
                                            value * 2,
                                            value << (random() % 64),
                                            random(),
                                            random() % 10'000,
                                            UINT64_MAX - random() % 1024,
                                            random() % 8};
  return others[random() % others.size()];
}

/// Mutates the input. Then, seven times in eight, `repair` corrects the checksums, because nearly
/// every input would be refused for those alone.
template <typename Repair>
std::size_t mutate_and_repair(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                              const Repair& repair) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 != 0) repair(std::span(data, size));
  return size;
}

}  // namespace precache::fuzz
