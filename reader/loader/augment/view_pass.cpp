// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/view_pass.hpp"

#include <type_traits>
#include <utility>

#include "formats/bytes/splitmix.hpp"
#include "precache/formats/error.hpp"
#include "reader/loader/augment/affine_operations.hpp"
#include "reader/loader/augment/blur.hpp"
#include "reader/loader/augment/canvas.hpp"
#include "reader/loader/augment/colour_operations.hpp"
#include "reader/loader/augment/erase.hpp"
#include "reader/loader/augment/flip_body.hpp"
#include "reader/loader/augment/geometry.hpp"
#include "reader/loader/augment/mask_steps.hpp"
#include "reader/loader/augment/policies.hpp"
#include "reader/loader/epoch_order.hpp"

namespace precache {
namespace augment {
namespace {

/// Erases numbers of the finished tensor.
void erase(const RandomErasing& operation, const SampleKey& key, const Step& step,
           const TensorSpec& spec, std::byte* out) {
  OperationRandom random(key, step.key);
  erase_numbers(choose(operation, random, step.in), spec, out);
}

bool chooses_flip(const RandomHorizontalFlip& operation, const SampleKey& key, const Step& step) {
  return is_flipped(operation.p, operation.alternate, key, step.key);
}

DrawnValue shown_rectangle(const Rectangle& rectangle) {
  return std::vector<DrawnValue>{std::int64_t{rectangle.top}, std::int64_t{rectangle.left},
                                 std::int64_t{rectangle.height}, std::int64_t{rectangle.width}};
}

Rectangle rectangle_of(const RandomResizedCrop& operation, const SampleKey& key, const Step& step,
                       const std::optional<ImageSize>& original) {
  OperationRandom random(key, step.key);
  return choose(operation, random, step.in, step.sees_whole ? original : std::nullopt);
}

/// The draw of an operation that needs nothing but its numbers.
template <typename T>
auto drawn(const T& operation, const SampleKey& key, const Step& step) {
  OperationRandom random(key, step.key);
  return choose(operation, random, step.in);
}

/// The scratch memory of the calling thread.
CanvasMemory& memory() {
  thread_local CanvasMemory memory;
  return memory;
}

bool erases_numbers(const Step& step) {
  const auto* const erasing = std::get_if<RandomErasing>(&step.operation);
  return erasing != nullptr && erasing->after_normalize;
}

/// Calls `visit(step, is_skipped)` for each step; those in a RandomApply that is not applied are
/// skipped.
template <typename Visit>
void for_each_step(const std::vector<Step>& steps, const SampleKey& key, const Visit& visit) {
  std::size_t skipped_until = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool is_skipped = i < skipped_until;
    visit(steps[i], is_skipped);
    const auto* const apply = std::get_if<RandomApply>(&steps[i].operation);
    if (apply == nullptr || is_skipped) continue;
    if (!OperationRandom(key, steps[i].key).chance(apply->p)) {
      skipped_until = i + 1 + steps[i].nested;
    }
  }
}

/// Applies the operations of a list to the picture of one sample.
struct Painter {
  const SampleKey& key;
  const std::optional<ImageSize>& original;
  const Step& step;
  Canvas& canvas;

  void operator()(const RandomResizedCrop& operation) const {
    canvas.crop(rectangle_of(operation, key, step, original));
    canvas.resample(*step.resampler);
  }
  void operator()(const Resize&) const { canvas.resample(*step.resampler); }
  void operator()(const CenterCrop& operation) const {
    Border border = border_of(operation, step.in);
    border.fill = &step.mask_fill;  // none for images
    canvas.crop(centre(operation, step.in), border);
  }
  void operator()(const RandomCrop& operation) const {
    canvas.crop(drawn(operation, key, step), border_of(operation, step.in));
  }
  void operator()(const RandomHorizontalFlip& operation) const {
    if (chooses_flip(operation, key, step)) canvas.flip();
  }
  void operator()(const RandomVerticalFlip& operation) const {
    if (!OperationRandom(key, step.key).chance(operation.p)) return;
    canvas.change([](PlanarImage& image, PlanarImage&) { flip_vertically(image); });
  }
  void operator()(const RandomQuarterTurn& operation) const {
    const std::uint32_t quarters = drawn(operation, key, step);
    canvas.change([&](PlanarImage& image, PlanarImage& spare) { turn(image, spare, quarters); });
  }
  void operator()(const RandomApply&) const {}  // for_each_step() draws for it
  template <typename T>
  void operator()(const T& operation) const {
    const auto draw = drawn(operation, key, step);
    canvas.change([&](PlanarImage& image, PlanarImage& spare) {
      if constexpr (std::is_same_v<decltype(draw), const PolicyDraw>) {
        if (step.is_of_mask) return apply_to_mask(draw, image, spare);
      }
      apply(draw, image, spare);
    });
  }
};

/// Shows what the operations of a list draw. Those that draw nothing are not shown.
struct Shower {
  const SampleKey& key;
  const std::optional<ImageSize>& original;
  const Step& step;

  std::optional<DrawnValue> operator()(const RandomResizedCrop& operation) const {
    return shown_rectangle(rectangle_of(operation, key, step, original));
  }
  std::optional<DrawnValue> operator()(const Resize&) const { return std::nullopt; }
  std::optional<DrawnValue> operator()(const CenterCrop&) const { return std::nullopt; }
  std::optional<DrawnValue> operator()(const RandomCrop& operation) const {
    return shown_rectangle(drawn(operation, key, step));
  }
  std::optional<DrawnValue> operator()(const RandomHorizontalFlip& operation) const {
    return chooses_flip(operation, key, step);
  }
  std::optional<DrawnValue> operator()(const RandomVerticalFlip& operation) const {
    return OperationRandom(key, step.key).chance(operation.p);
  }
  std::optional<DrawnValue> operator()(const RandomQuarterTurn& operation) const {
    return std::int64_t{drawn(operation, key, step)};
  }
  std::optional<DrawnValue> operator()(const RandomApply& operation) const {
    return OperationRandom(key, step.key).chance(operation.p);
  }
  template <typename T>
  std::optional<DrawnValue> operator()(const T& operation) const {
    return shown(drawn(operation, key, step));
  }
};

}  // namespace
}  // namespace augment

namespace {

BatchTransform without_lists(BatchTransform transform) {
  transform.augmentation = {};
  transform.views.clear();
  transform.sizes.clear();
  return transform;
}

/// The spec of the tensors that the last part gets: those of the last step.
TensorSpec spec_after(const std::vector<augment::Step>& steps, TensorSpec stored) {
  if (steps.empty()) return stored;
  stored.height = steps.back().out.height;
  stored.width = steps.back().out.width;
  return stored;
}

}  // namespace

ViewPass::ViewPass(const TensorSpec& stored, const BatchTransform& transform,
                   const Augmentation* list)
    : stored_(stored),
      transform_(without_lists(transform)),
      list_(list == nullptr ? std::nullopt : std::optional(*list)),
      steps_(list == nullptr ? std::vector<augment::Step>() : augment::make_steps(*list, stored)),
      pass_(spec_after(steps_, stored), transform_) {
  if (list != nullptr && (transform.crop || transform.flip)) {
    throw InvalidArgument("`crop` and `flip` cannot be combined with a list of operations",
                          "Put RandomCrop and RandomHorizontalFlip in the list.");
  }
  for (const augment::Step& step : steps_) {
    if (augment::erases_numbers(step) && pass_.result().dtype == DType::kUint8) {
      throw InvalidArgument("RandomErasing: `after_normalize` needs tensors of floats, not uint8");
    }
  }
}

void ViewPass::run(std::span<const std::byte> tensor, const SampleKey& key,
                   const std::optional<ImageSize>& original, std::byte* out, bool stream) const {
  if (steps_.empty()) {
    return pass_.run(tensor, choose_plain(key), out, stream);
  }
  augment::Canvas canvas(tensor, stored_, augment::memory());
  bool erases_numbers = false;
  augment::for_each_step(steps_, key, [&](const augment::Step& step, bool is_skipped) {
    if (augment::erases_numbers(step)) {
      erases_numbers = true;
    } else if (!is_skipped) {
      std::visit(augment::Painter{key, original, step, canvas}, step.operation);
    }
  });
  PixelJob job;
  canvas.set_source(job);
  pass_.finish(job, out, stream);
  if (erases_numbers) erase(key, out);
}

void ViewPass::erase(const SampleKey& key, std::byte* out) const {
  augment::for_each_step(steps_, key, [&](const augment::Step& step, bool is_skipped) {
    if (is_skipped || !augment::erases_numbers(step)) return;
    augment::erase(std::get<RandomErasing>(step.operation), key, step, result(), out);
  });
}

std::vector<OperationDraw> ViewPass::draw(const SampleKey& key,
                                          const std::optional<ImageSize>& original) const {
  if (!list_) return draw_plain(key);
  std::vector<OperationDraw> draws;
  augment::for_each_step(steps_, key, [&](const augment::Step& step, bool is_skipped) {
    auto value = std::visit(augment::Shower{key, original, step}, step.operation);
    if (value) draws.push_back({step.label, is_skipped ? DrawnValue() : std::move(*value)});
  });
  return draws;
}

AugmentationDraw ViewPass::choose_plain(const SampleKey& key) const {
  // The first of the repeats draws as if there were no others.
  return pass_.choose(key.seed + key.repeat * kGoldenGamma, key.epoch, key.sample);
}

std::vector<OperationDraw> ViewPass::draw_plain(const SampleKey& key) const {
  const AugmentationDraw draw = choose_plain(key);
  std::vector<OperationDraw> draws;
  if (transform_.crop && transform_.crop->place == CropPosition::kRandom) {
    const augment::Rectangle rectangle{draw.y, draw.x, result().height, result().width};
    draws.push_back({"RandomCrop", augment::shown_rectangle(rectangle)});
  }
  if (transform_.flip) draws.push_back({"RandomHorizontalFlip", draw.flip});
  return draws;
}

ViewPass ViewPass::with_size(ImageSize size) const {
  if (list_) {
    const Augmentation list = augment::resized(*list_, size);
    return {stored_, transform_, &list};
  }
  if (!transform_.crop) {
    throw InvalidArgument(
        "the image size cannot change: `crop` is not given",
        "Set `crop`, or give a list with an operation that sets the size, such as "
        "RandomResizedCrop.");
  }
  BatchTransform transform = transform_;
  transform.crop->height = size.height;
  transform.crop->width = size.width;
  return {stored_, transform, nullptr};
}

ViewPass ViewPass::for_masks() const {
  TensorSpec mask = stored_;
  mask.dtype = DType::kUint8;
  mask.layout = Layout::kChw;
  mask.channels = 1;
  ViewPass result(mask, {.crop = transform_.crop, .flip = transform_.flip}, nullptr);
  if (list_) {
    result.steps_ = augment::mask_steps(augment::make_steps(*list_, stored_), transform_.mask_fill);
    result.pass_ = PixelPass(spec_after(result.steps_, mask), {});
  }
  return result;
}

}  // namespace precache
