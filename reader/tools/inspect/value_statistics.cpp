// SPDX-License-Identifier: Apache-2.0
#include "reader/tools/inspect/value_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "formats/bytes/half_float.hpp"
#include "formats/os/tasks.hpp"

namespace precache {
namespace {

constexpr std::uint32_t kMostChannels = 16;
constexpr std::size_t kBins = 64;
constexpr std::uint64_t kMostParts = 64;  // that are summed separately, for any number of threads

using TensorOf = std::function<HeldTensor(std::uint64_t)>;

/// The positions of the elements of a channel.
struct Planes {
  std::size_t channels;
  std::size_t pixels;
  std::size_t channel_step;
  std::size_t pixel_step;

  explicit Planes(const TensorSpec& spec)
      : channels(spec.channels),
        pixels(std::size_t{spec.height} * spec.width),
        channel_step(spec.layout == Layout::kChw ? pixels : 1),
        pixel_step(spec.layout == Layout::kChw ? 1 : channels) {
    if (channels <= kMostChannels) return;
    pixels *= channels;
    channels = 1;
    pixel_step = 1;
  }
};

/// Calls `call` with every element of a channel, a byte or a float.
template <DType dtype, typename Call>
void each_value(const Planes& planes, std::span<const std::byte> tensor, std::size_t channel,
                const Call& call) {
  const std::byte* at = tensor.data() + channel * planes.channel_step * size_bytes(dtype);
  const std::size_t step = planes.pixel_step * size_bytes(dtype);
  for (std::size_t i = 0; i < planes.pixels; ++i, at += step) {
    if constexpr (dtype == DType::kUint8) {
      call(*at);
    } else if constexpr (dtype == DType::kFloat32) {
      float value = 0;
      std::memcpy(&value, at, sizeof value);
      call(value);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, at, sizeof bits);
      call(dtype == DType::kFloat16 ? from_float16(bits) : from_bfloat16(bits));
    }
  }
}

/// The tensors to measure.
struct Tensors {
  Planes planes;
  std::uint64_t count;
  const TensorOf& tensor;
  unsigned threads;

  /// The sum of each channel over all tensors: `take` adds one channel of one tensor to a sum.
  /// Parts are summed separately and added in order, so the result is the same for any number of
  /// threads.
  template <typename Sum, typename Take>
  [[nodiscard]] std::vector<Sum> sum_channels(const Take& take) const {
    const std::uint64_t size = std::max<std::uint64_t>((count + kMostParts - 1) / kMostParts, 1);
    std::vector<Sum> sums(planes.channels);
    std::vector<std::vector<Sum>> parts((count + size - 1) / size, sums);
    run_tasks(parts.size(), threads, [&](std::size_t part) {
      const std::uint64_t end = std::min<std::uint64_t>(count, (part + 1) * size);
      for (std::uint64_t i = part * size; i < end; ++i) {
        const auto [bytes, owner] = tensor(i);
        for (std::size_t channel = 0; channel < sums.size(); ++channel) {
          take(parts[part][channel], bytes, channel);
        }
      }
    });
    for (const auto& part : parts) {
      for (std::size_t channel = 0; channel < sums.size(); ++channel) {
        sums[channel].add(part[channel]);
      }
    }
    return sums;
  }
};

// --- uint8: the counts of all 256 values give exact results

struct ByteCounts {
  std::array<std::uint64_t, 256> counts{};

  void add(const ByteCounts& other) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  }
};

ValueFacts measure_bytes(const Tensors& tensors) {
  ValueFacts facts;
  facts.high = 256;
  const auto take = [&](ByteCounts& sum, std::span<const std::byte> bytes, std::size_t channel) {
    each_value<DType::kUint8>(tensors.planes, bytes, channel, [&](std::byte value) {
      ++sum.counts[std::to_integer<std::size_t>(value)];
    });
  };
  for (const ByteCounts& sum : tensors.sum_channels<ByteCounts>(take)) {
    facts.channels.push_back(byte_facts(sum.counts));
  }
  return facts;
}

// --- floats: the first pass finds range and mean, which the second pass needs

struct FloatSums {
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  double sum = 0;
  std::uint64_t finite = 0;
  std::uint64_t non_finite = 0;
  double squares = 0;
  std::array<std::uint64_t, kBins> bins{};

  void add(const FloatSums& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    sum += other.sum;
    finite += other.finite;
    non_finite += other.non_finite;
    squares += other.squares;
    for (std::size_t bin = 0; bin < kBins; ++bin) bins[bin] += other.bins[bin];
  }
};

template <DType dtype>
ValueFacts find_range(const Tensors& tensors) {
  const auto take = [&](FloatSums& sum, std::span<const std::byte> bytes, std::size_t channel) {
    FloatSums pass;
    each_value<dtype>(tensors.planes, bytes, channel, [&](float value) {
      if (!std::isfinite(value)) return void(++pass.non_finite);
      pass.min = std::min(pass.min, value);
      pass.max = std::max(pass.max, value);
      pass.sum += static_cast<double>(value);
    });
    pass.finite = tensors.planes.pixels - pass.non_finite;
    sum.add(pass);
  };
  ValueFacts facts;
  bool is_first = true;
  for (const FloatSums& pass : tensors.sum_channels<FloatSums>(take)) {
    ChannelFacts channel;
    channel.non_finite = pass.non_finite;
    if (pass.finite != 0) {
      channel.min = static_cast<double>(pass.min);
      channel.max = static_cast<double>(pass.max);
      channel.mean = pass.sum / static_cast<double>(pass.finite);
      facts.low = is_first ? channel.min : std::min(facts.low, channel.min);
      facts.high = is_first ? channel.max : std::max(facts.high, channel.max);
      is_first = false;
    }
    facts.channels.push_back(std::move(channel));
  }
  return facts;
}

template <DType dtype>
ValueFacts measure_floats(const Tensors& tensors) {
  ValueFacts facts = find_range<dtype>(tensors);
  const double scale = facts.high > facts.low ? kBins / (facts.high - facts.low) : 0;
  const auto take = [&](FloatSums& pass, std::span<const std::byte> bytes, std::size_t channel) {
    const double mean = facts.channels[channel].mean;
    each_value<dtype>(tensors.planes, bytes, channel, [&](float value) {
      if (!std::isfinite(value)) return;
      const double distance = static_cast<double>(value) - mean;
      pass.squares += distance * distance;
      const double bin = (static_cast<double>(value) - facts.low) * scale;
      // A file that changes meanwhile may have other values than in the first pass.
      ++pass.bins[static_cast<std::size_t>(std::clamp(bin, 0.0, kBins - 1.0))];
    });
  };
  const auto sums = tensors.sum_channels<FloatSums>(take);
  for (std::size_t channel = 0; channel < sums.size(); ++channel) {
    const FloatSums& sum = sums[channel];
    const auto elements = std::reduce(sum.bins.begin(), sum.bins.end(), std::uint64_t{0});
    facts.channels[channel].histogram.assign(sum.bins.begin(), sum.bins.end());
    facts.channels[channel].std =
        elements == 0 ? 0 : std::sqrt(sum.squares / static_cast<double>(elements));
  }
  return facts;
}

}  // namespace

ChannelFacts byte_facts(const std::array<std::uint64_t, 256>& counts) {
  ChannelFacts facts;
  facts.histogram.resize(kBins);
  std::uint64_t elements = 0;
  std::uint64_t sum = 0;
  for (std::size_t value = 0; value < 256; ++value) {
    if (counts[value] == 0) continue;
    if (elements == 0) facts.min = static_cast<double>(value);
    facts.max = static_cast<double>(value);
    elements += counts[value];
    sum += counts[value] * value;
    facts.histogram[value * kBins / 256] += counts[value];
  }
  if (elements == 0) return facts;
  facts.mean = static_cast<double>(sum) / static_cast<double>(elements);
  double squares = 0;
  for (std::size_t value = 0; value < 256; ++value) {
    const double distance = static_cast<double>(value) - facts.mean;
    squares += static_cast<double>(counts[value]) * distance * distance;
  }
  facts.std = std::sqrt(squares / static_cast<double>(elements));
  return facts;
}

ValueFacts measure_values(const TensorSpec& spec, std::uint64_t count, const TensorOf& tensor,
                          unsigned threads) {
  const Tensors tensors{Planes(spec), count, tensor, threads};
  ValueFacts facts = spec.dtype == DType::kUint8      ? measure_bytes(tensors)
                     : spec.dtype == DType::kFloat16  ? measure_floats<DType::kFloat16>(tensors)
                     : spec.dtype == DType::kBfloat16 ? measure_floats<DType::kBfloat16>(tensors)
                                                      : measure_floats<DType::kFloat32>(tensors);
  facts.samples_read = count;
  return facts;
}

}  // namespace precache
