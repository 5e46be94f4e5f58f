// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/pictures.hpp"

#include <fmt/format.h>

#include <optional>

#include "convert/pictures/painting.hpp"
#include "precache/formats/error.hpp"
#include "reader/tools/inspect/value_statistics.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kHeadersRead = 200;
constexpr std::uint64_t kImagesDecoded = 64;
constexpr std::uint64_t kPixelsDecoded = 20'000'000;  // some tenths of a second

std::string label_text(const Dataset& dataset, std::int64_t label) {
  if (label == -1) return {};
  const auto index = static_cast<std::uint64_t>(label);
  const auto& classes = dataset.classes();
  return index < classes.size() ? classes[index] : fmt::format("{}", label);
}

void read_headers(const Dataset& dataset, EncodedPainter& painter, EncodedFacts& facts) {
  for (const std::uint64_t i : spread(dataset.size(), kHeadersRead)) {
    ImageHeader header;
    const Sample sample = dataset[i];
    if (painter.read_header(sample.bytes(), header)) {
      ++facts.undecodable;
    } else {
      facts.width.add(header.width);
      facts.height.add(header.height);
    }
  }
}

std::optional<ValueFacts> decode_some(const Dataset& dataset, EncodedPainter& painter) {
  EncodedPainter::ByteCounts counts{};
  ValueFacts values;
  std::uint64_t pixels = 0;
  for (const std::uint64_t i : spread(dataset.size(), kImagesDecoded)) {
    const Sample sample = dataset[i];
    ImageHeader header;
    if (painter.read_header(sample.bytes(), header)) continue;
    pixels += std::uint64_t{header.width} * header.height;
    if (pixels > kPixelsDecoded && values.samples_read != 0) break;
    EncodedPainter::ByteCounts with = counts;
    if (painter.count(sample.bytes(), with)) continue;  // a broken image does not count
    counts = with;
    ++values.samples_read;
  }
  if (values.samples_read == 0) return std::nullopt;
  values.is_decoded = true;
  values.high = 256;
  for (const auto& channel : counts) values.channels.push_back(byte_facts(channel));
  return values;
}

}  // namespace

void describe_images(Inspection& facts) {
  const bool has_images = facts.encoded && (facts.encoded->kinds.contains("JPEG") ||
                                            facts.encoded->kinds.contains("PNG"));
  if (!has_images || !facts.dataset) return;
  const Dataset& dataset = *facts.dataset;
  EncodedPainter painter;
  read_headers(dataset, painter, *facts.encoded);
  facts.values = decode_some(dataset, painter);
  if (!facts.values) return;
  facts.values->is_complete =
      facts.values->samples_read == dataset.size() && facts.files_read == facts.files;
}

Preview draw_preview(const Inspection& facts, std::uint64_t samples) {
  Preview preview;
  if (!facts.dataset) return preview;
  const Dataset& dataset = *facts.dataset;
  std::optional<TensorPainter> tensors;
  if (dataset.has_spec()) tensors.emplace(facts);
  EncodedPainter encoded;
  for (const std::uint64_t i : spread(dataset.size(), samples)) {
    const Sample sample = dataset[i];
    Tile tile{sample.key(), label_text(dataset, sample.label()), {}, {}};
    if (tensors) {
      tile.picture = tensors->paint(sample.bytes());
    } else if (const auto rejection = encoded.paint(sample.bytes(), tile.picture)) {
      tile.unsupported_reason = rejection->reason;
    }
    sample.lease().check();
    preview.tiles.push_back(std::move(tile));
  }
  if (tensors) preview.drawing = tensors->drawing();
  return preview;
}

}  // namespace precache
