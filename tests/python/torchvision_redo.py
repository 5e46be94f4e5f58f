# SPDX-License-Identifier: Apache-2.0
"""Does with torchvision and Pillow what a loader says that it drew for a sample."""

import collections

import numpy as np
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F
from torchvision.transforms.autoaugment import _apply_op

from precache import transforms


def pil(array):
    """The picture of a stored sample of (channels, height, width)."""
    return Image.fromarray(array[0] if len(array) == 1 else np.ascontiguousarray(array.transpose(1, 2, 0)))


def pixels(image):
    """The opposite."""
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


NOT_RANDOM = (transforms.Resize, transforms.CenterCrop)  # they draw nothing


class Redo:
    """Runs `operations` on a picture with the numbers of `draw`, a dict of Loader.draw()."""

    def __init__(self, operations, draw):
        self._operations = operations
        self._draw = draw
        self._seen = collections.Counter()

    def __call__(self, image):
        image = self._run(image, self._operations)
        assert sum(self._seen.values()) == len(self._draw), "a draw belongs to no operation"
        return image

    def _value(self, operation):
        name = type(operation).__name__
        self._seen[name] += 1
        return self._draw[name if self._seen[name] == 1 else f"{name}#{self._seen[name]}"]

    def _run(self, image, operations):
        for operation in operations:
            value = None if isinstance(operation, NOT_RANDOM) else self._value(operation)
            if isinstance(operation, transforms.RandomApply):
                changed = self._run(image, operation.transforms)
                image = changed if value else image
            elif value is not None or isinstance(operation, NOT_RANDOM):
                image = _REDO[type(operation)](image, operation, value)
        return image


def _mode(operation):
    return InterpolationMode(operation.interpolation)


def _fill(operation, image):
    fill = operation.fill
    return list(fill) if isinstance(fill, tuple) else fill if fill is None else [fill] * len(image.getbands())


def _crop(image, operation, value):
    """As `v2` pads: once, so that a mirrored border is that of the image."""
    left, top, right, bottom = operation.padding or (0, 0, 0, 0)
    height, width = operation.size
    if operation.pad_if_needed:
        columns = max(0, width - (image.width + left + right))
        rows = max(0, height - (image.height + top + bottom))
        left, top, right, bottom = left + columns, top + rows, right + columns, bottom + rows
    if left or top or right or bottom:
        image = F.pad(image, [left, top, right, bottom], operation.fill, operation.padding_mode)
    return F.crop(image, *value)


def _jitter(image, operation, value):
    order, *factors = value
    change = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
    for number in order:
        if factors[number] is not None:
            image = change[number](image, factors[number])
    return image


def _policy(image, operation, value):
    steps = [value] if isinstance(operation, transforms.TrivialAugmentWide) else value
    for name, magnitude in steps:
        image = _apply_op(image, name, magnitude, _mode(operation), _fill(operation, image))
    return image


def _erase(image, operation, value):
    array = torch.from_numpy(pixels(image).copy())
    color = torch.tensor(operation.value).reshape(-1, 1, 1).to(torch.uint8)
    return pil(F.erase(array, *value, color).numpy())


def _if_true(change):
    return lambda image, operation, value: change(image, operation) if value else image


_REDO = {
    transforms.RandomResizedCrop: lambda image, operation, value: F.resized_crop(
        image, *value, list(operation.size), _mode(operation)
    ),
    transforms.Resize: lambda image, operation, value: F.resize(image, operation.size, _mode(operation)),
    transforms.CenterCrop: lambda image, operation, value: F.center_crop(image, operation.size),
    transforms.RandomCrop: _crop,
    transforms.RandomHorizontalFlip: _if_true(lambda image, operation: F.hflip(image)),
    transforms.RandomVerticalFlip: _if_true(lambda image, operation: F.vflip(image)),
    transforms.RandomQuarterTurn: lambda image, operation, value: image.rotate(90 * value, expand=True),
    transforms.RandomRotation: lambda image, operation, value: F.rotate(
        image, value, _mode(operation), center=operation.center, fill=_fill(operation, image)
    ),
    transforms.RandomAffine: lambda image, operation, value: F.affine(
        image, value[0], value[1], value[2], value[3], _mode(operation), _fill(operation, image), operation.center
    ),
    transforms.ColorJitter: _jitter,
    transforms.RandomGrayscale: _if_true(lambda image, operation: F.rgb_to_grayscale(image, len(image.getbands()))),
    transforms.RandomErasing: _erase,
    transforms.GaussianBlur: lambda image, operation, value: F.gaussian_blur(
        image, list(operation.kernel_size), [value, value]
    ),
    transforms.RandomSolarize: _if_true(lambda image, operation: F.solarize(image, operation.threshold)),
    transforms.RandomPosterize: _if_true(lambda image, operation: F.posterize(image, operation.bits)),
    transforms.RandomEqualize: _if_true(lambda image, operation: F.equalize(image)),
    transforms.RandomAutocontrast: _if_true(lambda image, operation: F.autocontrast(image)),
    transforms.RandomInvert: _if_true(lambda image, operation: F.invert(image)),
    transforms.RandomAdjustSharpness: _if_true(
        lambda image, operation: F.adjust_sharpness(image, operation.sharpness_factor)
    ),
    transforms.TrivialAugmentWide: _policy,
    transforms.RandAugment: _policy,
    transforms.AutoAugment: _policy,
}
