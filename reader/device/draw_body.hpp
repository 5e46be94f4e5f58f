// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reader/device/augment_work.hpp"
#include "reader/loader/augment/erase_body.hpp"
#include "reader/loader/augment/flip_body.hpp"

/// The draws of the operations of a list. Tests also run it on the CPU; the draws equal those of
/// ViewPass.
namespace precache::device {

PRECACHE_HOST_DEVICE inline augment::Rectangle draw_rectangle(const DeviceStep& step,
                                                              const RowKey& row,
                                                              OperationRandom& random) {
  if (!step.sees_whole || row.original_height == 0) {
    return augment::choose_rectangle(step.ranges, random, step.in_height, step.in_width);
  }
  const augment::Rectangle drawn =
      augment::choose_rectangle(step.ranges, random, row.original_height, row.original_width);
  return augment::scaled(drawn, row.original_height, row.original_width, step.in_height,
                         step.in_width);
}

/// As augment::rotate(): quarters of square images only move pixels.
PRECACHE_HOST_DEVICE inline void draw_rotation(const DeviceStep& step, double degrees,
                                               StepDraw& draw) {
  const double angle = augment::whole_turn(degrees);
  const bool is_square = step.in_height == step.in_width;
  draw.is_turn = !step.has_center &&
                 (angle == 0 || angle == 180 || (is_square && (angle == 90 || angle == 270)));
  if (draw.is_turn) {
    draw.turns = static_cast<std::uint32_t>(angle / 90);
    return;
  }
  const augment::Point middle{step.in_width / 2.0, step.in_height / 2.0};
  draw.matrix = augment::rotation_matrix(angle, step.has_center ? step.center : middle);
}

PRECACHE_HOST_DEVICE inline void draw_affine(const DeviceStep& step, OperationRandom& random,
                                             StepDraw& draw) {
  const augment::DrawnAffine drawn =
      augment::choose_affine(step.affine, random, step.in_height, step.in_width);
  const augment::Point middle{step.in_width * 0.5, step.in_height * 0.5};
  draw.matrix = augment::inverse_affine_matrix(drawn.degrees, drawn.translate, drawn.scale,
                                               drawn.shear, step.has_center ? step.center : middle);
}

PRECACHE_HOST_DEVICE inline void draw_jitter(const DeviceStep& step, OperationRandom& random,
                                             StepDraw& draw) {
  random.permute(draw.order, 4);
  for (int i = 0; i < 4; ++i) {
    const double share = random.uniform();
    draw.factors[i] = step.factors[i][0] + (step.factors[i][1] - step.factors[i][0]) * share;
  }
}

PRECACHE_HOST_DEVICE inline void draw_step(const DeviceStep& step, const SampleKey& key,
                                           const RowKey& row, StepDraw& draw) {
  OperationRandom random(key, step.key);
  draw.applied = true;
  draw.is_turn = false;
  switch (step.kind) {
    case StepKind::kRandomResizedCrop:
      draw.rectangle = draw_rectangle(step, row, random);
      break;
    case StepKind::kResize:
      draw.rectangle = {0, 0, step.in_height, step.in_width};
      break;
    case StepKind::kCenterCrop:
      draw.rectangle = step.part;
      break;
    case StepKind::kRandomCrop: {
      const auto top = static_cast<std::uint32_t>(random.below(std::uint64_t{step.free_rows} + 1));
      const auto left =
          static_cast<std::uint32_t>(random.below(std::uint64_t{step.free_columns} + 1));
      draw.rectangle = {top, left, step.height, step.width};
      break;
    }
    case StepKind::kHorizontalFlip:
      draw.applied = augment::is_flipped(step.p, step.alternate, key, step.key);
      break;
    case StepKind::kQuarterTurn:
      draw.turns = static_cast<std::uint32_t>(random.below(4));
      break;
    case StepKind::kRotation:
      draw_rotation(step, random.uniform(step.affine.degrees[0], step.affine.degrees[1]), draw);
      break;
    case StepKind::kAffine:
      draw_affine(step, random, draw);
      break;
    case StepKind::kColorJitter:
      draw_jitter(step, random, draw);
      break;
    case StepKind::kErasing: {
      const augment::Erased erased =
          augment::choose_erased(step.p, step.ranges, random, step.in_height, step.in_width);
      draw.applied = erased.applied;
      draw.rectangle = erased.rectangle;
      draw.noise = erased.noise;
      break;
    }
    case StepKind::kVerticalFlip:
    case StepKind::kGrayscale:
    case StepKind::kSolarize:
    case StepKind::kPosterize:
    case StepKind::kEqualize:
    case StepKind::kAutocontrast:
    case StepKind::kSharpness:
    case StepKind::kApply:
      draw.applied = random.chance(step.p);
      break;
  }
}

/// The draws of one row. Steps of a kApply that is not applied are not either.
PRECACHE_HOST_DEVICE inline void draw_row(const DrawWork& work, std::uint32_t row) {
  const RowKey& at = work.rows[row];
  const SampleKey key{work.seed, work.epoch, at.sample, at.repeat, work.view};
  StepDraw* const draws = work.draws + std::uint64_t{row} * work.list.count;
  std::uint32_t skipped_until = 0;
  for (std::uint32_t i = 0; i < work.list.count; ++i) {
    const DeviceStep& step = work.list.steps[i];
    if (i < skipped_until) {
      draws[i].applied = false;
      continue;
    }
    draw_step(step, key, at, draws[i]);
    if (step.kind == StepKind::kApply && !draws[i].applied) skipped_until = i + 1 + step.nested;
  }
}

}  // namespace precache::device
