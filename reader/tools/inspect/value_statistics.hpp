// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "precache/formats/tensor_spec.hpp"
#include "precache/tools/inspect.hpp"

namespace precache {

/// The bytes of a tensor, and the owner of their memory.
struct HeldTensor {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Range, mean, deviation and histogram of each channel of `count` tensors. The result is the same
/// for any number of threads.
///
/// `tensor` returns a tensor of `spec`. Several threads call it at once, twice for each tensor of
/// floats.
[[nodiscard]] ValueFacts measure_values(const TensorSpec& spec, std::uint64_t count,
                                        const std::function<HeldTensor(std::uint64_t)>& tensor,
                                        unsigned threads);

/// The same for one channel of bytes, from the number of times that each value occurs; the
/// histogram has the range 0 to 256.
[[nodiscard]] ChannelFacts byte_facts(const std::array<std::uint64_t, 256>& counts);

}  // namespace precache
