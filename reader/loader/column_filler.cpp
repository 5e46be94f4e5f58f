// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/column_filler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"
#include "reader/loader/augment/view_passes.hpp"

namespace precache {

NamedColumns columns_of(const ShardSet& shards, const std::vector<std::string>& names) {
  if (names.empty()) return nullptr;
  std::vector<NamedColumn> specs;
  for (const std::string& name : names) {
    if (std::ranges::find(specs, name, &NamedColumn::name) != specs.end()) {
      throw InvalidArgument(fmt::format("`columns` has '{}' twice", name));
    }
    specs.push_back((*shards.named())[shards.named_column(name, "columns")]);
  }
  return std::make_shared<const std::vector<NamedColumn>>(std::move(specs));
}

ColumnFiller::ColumnFiller(const ShardSet& shards, const std::vector<std::string>& names) {
  for (const std::string& name : names) numbers_.push_back(shards.named_column(name, "columns"));
}

void ColumnFiller::announce(BatchBuffer& slot) const {
  slot.columns = slot.passes->columns();
  slot.column_values.resize(numbers_.size());
  for (std::size_t c = 0; c < numbers_.size(); ++c) {
    slot.column_values[c].resize(checked_mul(slot.samples.size(), (*slot.columns)[c].size_bytes()));
  }
}

void ColumnFiller::fill(BatchBuffer& slot, std::size_t i, const ColumnValues& values,
                        std::span<const std::byte> file, std::uint64_t record, std::uint64_t seed,
                        const std::optional<ImageSize>& original) const {
  const ViewPass* const mask = slot.passes->mask();
  for (std::size_t c = 0; c < numbers_.size(); ++c) {
    const NamedColumn& column = (*slot.columns)[c];
    const std::span<const std::byte> stored = values.named(file, numbers_[c], record);
    std::byte* const out = slot.column_values[c].data() + i * column.size_bytes();
    if (mask != nullptr && column.is_mask()) {
      const SampleKey key{seed, slot.epoch, slot.samples[i], slot.repeats[i], 0};
      mask->run(stored, key, original, out, false);
    } else {
      std::memcpy(out, stored.data(), stored.size());
    }
  }
}

}  // namespace precache
