// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "precache/formats/dtype.hpp"
#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/affine_draw_body.hpp"
#include "reader/loader/augment/affine_matrix_body.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/rectangle_body.hpp"

/// The arguments of the kernels that run lists of operations. A list is an array of steps in the
/// memory of the device. One kernel draws for all steps of all samples, a second one changes the
/// pictures, and the kernel of pixels then normalises and casts them.
namespace precache::device {

/// The sample of a batch's row, with the size of the picture that it was made of (0: unknown).
struct RowKey {
  std::uint64_t sample = 0;
  std::uint32_t repeat = 0;
  std::uint32_t original_height = 0;
  std::uint32_t original_width = 0;
};

enum class StepKind : std::uint8_t {
  kRandomResizedCrop,
  kResize,
  kCenterCrop,
  kRandomCrop,
  kHorizontalFlip,
  kVerticalFlip,
  kQuarterTurn,
  kRotation,
  kAffine,
  kColorJitter,
  kGrayscale,
  kErasing,
  kSolarize,
  kPosterize,
  kEqualize,
  kAutocontrast,
  kSharpness,
  kApply,
};

/// An operation with the size of its images: those of its fields that its kind uses.
struct DeviceStep {
  StepKind kind = StepKind::kApply;
  OperationKey key;
  std::uint32_t in_height = 0;
  std::uint32_t in_width = 0;
  std::uint32_t height = 0;  // of the result
  std::uint32_t width = 0;
  double p = 1;
  bool sees_whole = false;   // as augment::Step
  bool alternate = false;    // of a flip
  std::uint32_t nested = 0;  // of kApply, as augment::Step
  Interpolation interpolation = Interpolation::kBilinear;
  PaddingMode padding_mode = PaddingMode::kConstant;
  std::uint32_t border_top = 0;  // around the image, for crops
  std::uint32_t border_left = 0;
  std::uint32_t free_rows = 0;  // of the padded image, outside a random crop
  std::uint32_t free_columns = 0;
  augment::Rectangle part{};          // of kCenterCrop, in the padded image
  augment::RectangleRanges ranges{};  // of resized crops and of erased rectangles
  augment::AffineRanges affine{};     // its degrees are also those of rotations
  bool has_center = false;
  augment::Point center{};
  bool jitters[4] = {};  // brightness, contrast, saturation, hue
  double factors[4][2] = {};
  double factor = 1;            // of kSharpness
  std::uint32_t threshold = 0;  // of kSolarize: the first byte that is inverted
  std::uint32_t mask = 0xff;    // of kPosterize
  bool is_noise = false;        // of kErasing
  bool erases_numbers = false;  // likewise: after the pixels are normalised
  /// Fills and erased values, in the array of all values: none for 0, one for all channels, or one
  /// for each.
  std::uint32_t values_at = 0;
  std::uint32_t values = 0;
};

/// The result of a step for a sample, as drawn.
struct StepDraw {
  bool applied = false;
  bool is_turn = false;     // a rotation by whole quarters
  std::uint32_t turns = 0;  // quarters, counter-clockwise
  augment::Rectangle rectangle;
  augment::AffineMatrix matrix;  // of rotations and affine maps
  double factors[4];             // of kColorJitter
  std::uint8_t order[4];
  std::uint64_t noise;  // of kErasing: the key
};

/// A list in the memory of the device.
struct StepList {
  const DeviceStep* steps = nullptr;
  std::uint32_t count = 0;
  const double* values = nullptr;
  std::uint32_t value_count = 0;
};

/// The draws of one batch and one view; the argument of a kernel with a thread for each sample.
struct DrawWork {
  StepList list;
  const RowKey* rows = nullptr;
  std::uint32_t samples = 0;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint32_t view = 0;
  StepDraw* draws = nullptr;  // results: of each sample, one for each step
};

/// Where a block keeps the pictures of the sample that it works on. The offsets are those of two
/// pictures that take turns, of the one between the passes of a resize, and of its weights.
struct Scratch {
  std::byte* first = nullptr;
  std::uint64_t block_bytes = 0;
  std::uint32_t blocks = 0;
  std::uint64_t second_at = 0;
  std::uint64_t pass_at = 0;
  std::uint64_t taps_at = 0;
};

/// The numbers of finished tensors that are erased; the argument of a kernel with a block for each
/// sample.
struct EraseWork {
  StepList list;
  const StepDraw* draws = nullptr;
  std::byte* tensors = nullptr;
  std::uint32_t samples = 0;
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool hwc = false;
  DType type = DType::kFloat32;
};

/// The pictures of one batch and one view; the argument of a kernel with a block for each sample.
struct PictureWork {
  const std::byte* in = nullptr;  // as in PixelWork
  std::uint64_t in_samples = 0;
  const std::uint64_t* rows = nullptr;
  std::uint32_t samples = 0;
  std::uint32_t channels = 0;
  std::uint32_t in_height = 0;
  std::uint32_t in_width = 0;
  std::uint32_t element_bytes = 1;
  bool in_hwc = false;
  StepList list;
  const StepDraw* draws = nullptr;
  Scratch scratch;
  std::byte* out = nullptr;  // the finished pictures, channel by channel, without gaps
  std::uint32_t height = 0;  // of those
  std::uint32_t width = 0;
};

}  // namespace precache::device
