// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/column_filler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/splitmix.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

bool moves_pixels(const BatchTransform& transform) {
  return transform.crop.has_value() || transform.flip;
}

/// Crops and flips a mask as PixelPass does with the image of the same sample.
PixelPass mask_pass(const NamedColumn& mask, const TensorSpec& image,
                    const BatchTransform& transform) {
  if (mask.shape[0] != image.height || mask.shape[1] != image.width) {
    throw InvalidArgument(
        fmt::format("`columns` has '{}', a mask of {}x{}, but the images are {}x{}, and `crop` and "
                    "`flip` are for both",
                    mask.name, mask.shape[0], mask.shape[1], image.height, image.width),
        "Leave out the mask, or `crop` and `flip`.");
  }
  TensorSpec spec;
  spec.dtype = DType::kUint8;
  spec.layout = Layout::kChw;
  spec.channels = 1;
  spec.height = mask.shape[0];
  spec.width = mask.shape[1];
  return {spec, BatchTransform{.crop = transform.crop, .flip = transform.flip}};
}

}  // namespace

ColumnFiller::ColumnFiller(const ShardSet& shards, const std::vector<std::string>& names,
                           const BatchTransform& transform) {
  if (names.empty()) return;
  std::vector<NamedColumn> specs;
  for (const std::string& name : names) {
    if (std::ranges::find(specs, name, &NamedColumn::name) != specs.end()) {
      throw InvalidArgument(fmt::format("`columns` has '{}' twice", name));
    }
    const std::size_t number = shards.named_column(name, "columns");
    NamedColumn spec = (*shards.named())[number];
    std::optional<PixelPass> pass;
    if (spec.is_mask() && transform.has_lists()) {
      throw Unsupported(
          fmt::format("`columns` has the mask '{}', which lists of operations do not change yet",
                      name),
          "Use `crop` and `flip`, or leave out the mask.");
    }
    if (spec.is_mask() && moves_pixels(transform)) {
      pass.emplace(mask_pass(spec, *shards.spec(), transform));
      spec.shape = {pass->result().height, pass->result().width};
    }
    columns_.push_back({number, spec.size_bytes(), std::move(pass)});
    specs.push_back(std::move(spec));
  }
  specs_ = std::make_shared<const std::vector<NamedColumn>>(std::move(specs));
}

void ColumnFiller::announce(BatchBuffer& slot) const {
  slot.columns = specs_;
  slot.column_values.resize(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    slot.column_values[c].resize(checked_mul(slot.samples.size(), columns_[c].bytes));
  }
}

void ColumnFiller::fill(BatchBuffer& slot, std::size_t i, const ColumnValues& values,
                        std::span<const std::byte> file, std::uint64_t record,
                        std::uint64_t seed) const {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Chosen& chosen = columns_[c];
    const std::span<const std::byte> stored = values.named(file, chosen.number, record);
    std::byte* const out = slot.column_values[c].data() + i * chosen.bytes;
    if (chosen.pass) {
      // As ViewPass draws for the image: each repeat of a sample has its own seed.
      const auto draw =
          chosen.pass->choose(seed + slot.repeats[i] * kGoldenGamma, slot.epoch, slot.samples[i]);
      chosen.pass->run(stored, draw, out, false);
    } else {
      std::memcpy(out, stored.data(), chosen.bytes);
    }
  }
}

}  // namespace precache
