// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwy/aligned_allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/image/taps.hpp"

namespace precache {

/// Two neighbouring 22-bit weights, split so that 16-bit multiply-adds have the exact sum: weight =
/// high * 2^11 + low. The first weight of each is in the lower half.
struct WeightPair {
  std::int32_t high = 0;
  std::int32_t low = 0;
};
inline constexpr int kLowWeightBits = 11;

[[nodiscard]] constexpr std::int32_t weight_of(const WeightPair& pair, bool second) {
  const int shift = second ? 0 : 16;  // to the upper half, and down again with the sign
  const auto half = [&](std::int32_t both) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(both) << shift) >> 16;
  };
  return half(pair.high) * (1 << kLowWeightBits) + half(pair.low);
}

/// The weights of every row of the result, for a vertical pass.
struct VerticalTable {
  struct Row {
    std::uint32_t first = 0;  // source row
    std::uint32_t count = 0;  // of source rows; the last pair of an odd number has one weight of 0
    std::size_t pairs = 0;    // index of the first
  };
  std::vector<Row> rows;
  std::vector<WeightPair> pairs;

  static VerticalTable make(std::uint32_t source, std::uint32_t resized, Filter filter);
  [[nodiscard]] std::size_t size_bytes() const {
    return rows.size() * sizeof(Row) + pairs.size() * sizeof(WeightPair);
  }
};

/// The same for a horizontal pass, in the order in which vectors of `lanes` outputs need it.
///
/// The pixels of a group of `lanes` outputs come from one load of 4 * lanes bytes. One shuffle
/// moves 16 neighbouring bytes to each block of four outputs, a second one picks each output's pair
/// of pixels. The next pair of taps is two bytes further, so the same shuffles serve all pairs.
struct HorizontalTable {
  std::uint32_t outputs = 0;
  std::size_t lanes = 0;             // 0: outputs are too far apart for vectors, or there are none
  std::size_t groups = 0;            // a multiple of 4
  std::size_t pairs = 0;             // of every output; unused ones have weights of 0
  std::size_t reach = 0;             // bytes that are read from the start of a row
  std::vector<std::uint32_t> bases;  // of each group: the first byte of the load
  hwy::AlignedFreeUniquePtr<std::int32_t[]> values;  // see group()
  Taps taps;                                         // without vectors, and for kNearest

  /// Of each group: the first shuffle, the second one, then high and low weights for each pair;
  /// each has `lanes` values.
  [[nodiscard]] std::size_t group_values() const { return lanes * (2 + 2 * pairs); }

  /// For vectors with this many 32-bit lanes; 0: without vectors.
  static HorizontalTable make(std::uint32_t source, std::uint32_t resized, Filter filter);
  static HorizontalTable make(std::uint32_t source, std::uint32_t resized, Filter filter,
                              std::size_t lanes);
  [[nodiscard]] std::size_t size_bytes() const {
    return bases.size() * sizeof(std::uint32_t) + groups * group_values() * sizeof(std::int32_t) +
           taps.outputs.size() * sizeof(Taps::Output) + taps.weights.size() * sizeof(std::int32_t);
  }
};

/// The tables of one size of the result for all sizes of the source, each made at its first use.
///
/// Crop, then resize: the weights depend on the size of a rectangle, not on its place. Any number
/// of threads may use one object at once.
template <typename Table>
class TableCache {
 public:
  TableCache(std::uint32_t largest_source, std::uint32_t resized, Filter filter)
      : resized_(resized), filter_(filter), tables_(std::size_t{largest_source} + 1) {}
  TableCache(const TableCache&) = delete;
  TableCache& operator=(const TableCache&) = delete;
  ~TableCache() {
    for (const auto& table : tables_) delete table.load();
  }

  /// Makes the table in `spare` if the cache is full.  REQUIRES: 1 <= source <= largest_source.
  const Table& get(std::uint32_t source, Table& spare) const {
    std::atomic<const Table*>& slot = tables_[source];
    const Table* found = slot.load(std::memory_order_acquire);
    if (found != nullptr) return *found;
    Table made = Table::make(source, resized_, filter_);
    if (bytes_.load(std::memory_order_relaxed) > kLargestBytes) return spare = std::move(made);
    auto* const kept = new Table(std::move(made));
    if (slot.compare_exchange_strong(found, kept, std::memory_order_acq_rel)) {
      bytes_.fetch_add(kept->size_bytes(), std::memory_order_relaxed);
      return *kept;
    }
    delete kept;  // another thread was faster
    return *found;
  }

 private:
  static constexpr std::size_t kLargestBytes = 32 << 20;
  std::uint32_t resized_;
  Filter filter_;
  mutable std::vector<std::atomic<const Table*>> tables_;
  mutable std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace precache
