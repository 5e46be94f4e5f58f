// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convert/decode/image_decoder.hpp"
#include "convert/transform/kernels.hpp"
#include "convert/transform/taps.hpp"
#include "convert/transform/tensor_writer.hpp"

namespace precache {

/// Resizes rows as they come: the horizontal pass at once, the vertical one as soon as its rows are there, so that no
/// more rows are kept than one output row needs.
class Resampler : public RowSink {
 public:
  /// What is to be done with the rows [vertical.begin, vertical.end) that follow, and where the result goes. All
  /// arguments are borrowed until the last row was taken.
  void start(const HorizontalPass& horizontal, const Taps& vertical, const Geometry& geometry,
             const TensorWriter& writer, std::span<std::byte> tensor);
  void take_row(const std::uint8_t* pixels) override;

 private:
  /// Writes all output rows that need no row from `available` on.
  void emit(std::uint32_t available);
  [[nodiscard]] std::uint8_t* ring_row(std::uint32_t source_row);

  const HorizontalPass* horizontal_ = nullptr;
  const Taps* vertical_ = nullptr;
  const TensorWriter* writer_ = nullptr;
  std::span<std::byte> tensor_;
  Geometry geometry_;
  std::uint32_t next_source_row_ = 0;
  std::size_t next_output_ = 0;
  std::size_t row_bytes_ = 0;
  std::uint32_t ring_rows_ = 0;
  std::vector<std::uint8_t> ring_;
  std::vector<std::uint8_t> output_row_;
  std::vector<const std::uint8_t*> tap_rows_;
};

}  // namespace precache
