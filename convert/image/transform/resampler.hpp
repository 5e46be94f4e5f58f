// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"
#include "convert/image/transform/geometry.hpp"
#include "convert/image/transform/kernels.hpp"
#include "convert/image/transform/tensor_writer.hpp"
#include "formats/image/taps.hpp"

namespace precache {

/// Resizes rows as they come, and keeps only those that one output row needs. The horizontal pass
/// is done at once and the vertical one as soon as its rows are complete, unless Geometry asks for
/// the vertical pass first.
class Resampler : public RowSink {
 public:
  /// Prepares for the rows [vertical.begin, vertical.end), of `source_width` pixels each. The
  /// arguments are borrowed until the last row was taken.
  void start(const HorizontalPass& horizontal, const Taps& vertical, const Geometry& geometry,
             std::uint32_t source_width, const TensorWriter& writer, std::span<std::byte> tensor);
  void take_row(const std::uint8_t* pixels) override;

 private:
  /// Writes all output rows that need no row from `available` on.
  void emit(std::uint32_t available);
  /// The vertical pass for one output row; the result is valid until the next call.
  [[nodiscard]] const std::uint8_t* vertical_pass(const Taps::Output& output);
  [[nodiscard]] std::uint8_t* ring_row(std::uint32_t source_row);

  const HorizontalPass* horizontal_ = nullptr;
  const Taps* vertical_ = nullptr;
  const TensorWriter* writer_ = nullptr;
  std::span<std::byte> tensor_;
  Geometry geometry_;
  std::uint32_t next_source_row_ = 0;
  std::size_t next_output_ = 0;
  bool vertical_first_ = false;
  std::size_t row_bytes_ = 0;  // of the rows in the ring
  std::size_t ring_stride_ = 0;
  std::uint32_t ring_rows_ = 0;
  std::vector<std::uint8_t> ring_;
  std::vector<std::uint8_t> vertical_row_;
  std::vector<std::uint8_t> output_row_;
  std::vector<const std::uint8_t*> tap_rows_;
};

}  // namespace precache
