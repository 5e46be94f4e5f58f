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

/// Bytes of a tensor, and what keeps them.
struct HeldTensor {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Range, mean, deviation and histogram of each channel of `count` tensors. The same for any
/// number of threads.
///
/// `tensor` gives one of the size of `spec`; several threads call it at once, twice for each tensor
/// of floats.
[[nodiscard]] ValueFacts measure_values(const TensorSpec& spec, std::uint64_t count,
                                        const std::function<HeldTensor(std::uint64_t)>& tensor,
                                        unsigned threads);

/// The same of one channel of bytes, from how often each value occurs; its histogram goes from 0 to
/// 256.
[[nodiscard]] ChannelFacts byte_facts(const std::array<std::uint64_t, 256>& counts);

}  // namespace precache
