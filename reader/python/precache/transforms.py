# SPDX-License-Identifier: Apache-2.0
"""Random changes of samples as they are read, named and parameterised as in torchvision.

A list of them is the `transform` of a loader. They run in the loader's threads, and give the pixels that torchvision gives
for PIL images.

>>> from precache import transforms
>>> steps = [transforms.RandomResizedCrop(24), transforms.RandomHorizontalFlip(), transforms.Normalize("imagenet")]
>>> loader = precache.Loader(folder, batch_size=4, shuffle=True, transform=steps)
>>> next(iter(loader))[0].shape
(4, 3, 24, 24)
>>> sorted(loader.draw(0, epoch=0))
['RandomHorizontalFlip', 'RandomResizedCrop']

Operations are immutable, can be compared and pickled, and check their arguments when they are made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from . import _options, _ranges
from ._errors import InvalidArgument

__all__ = [
    "AutoAugment",
    "CenterCrop",
    "ColorJitter",
    "GaussianBlur",
    "Normalize",
    "Operation",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomPosterize",
    "RandomQuarterTurn",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "TrivialAugmentWide",
]

Interpolation = Literal["nearest", "bilinear", "bicubic"]
Size = int | Sequence[int]
Range = float | Sequence[float]
Fill = int | Sequence[int] | None

_WARPS = ("nearest", "bilinear")  # of rotations and what is made of them


class Operation:
    """Base of all operations."""

    def _keep(self, **checked: Any) -> None:
        """Sets fields to their checked values."""
        for field, value in checked.items():
            object.__setattr__(self, field, value)

    def _name(self, field: str) -> str:
        return f"{field} of {type(self).__name__}"


class _WithProbability(Operation):
    p: float

    def __post_init__(self) -> None:
        self._keep(p=_ranges.probability(self._name("p"), self.p))


# --- geometry ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class RandomResizedCrop(Operation):
    """Cuts out a random part, and resizes it.

    Args:
        size: Height and width of the result, or one number for both.
        scale: The least and the largest share of the area that is cut out.
        ratio: The least and the largest width of the part, divided by its height.
        interpolation: "nearest", "bilinear" or "bicubic".

    >>> RandomResizedCrop(224, scale=(0.35, 1))
    RandomResizedCrop(size=(224, 224), scale=(0.35, 1.0), ratio=(0.75, 1.3333333333333333), interpolation='bilinear')
    """

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3 / 4, 4 / 3)
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        ratio = _ranges.interval(self._name("ratio"), self.ratio, 0)
        if ratio[0] == 0:
            raise _ranges.refuse(self._name("ratio"), self.ratio, "Ratios must be larger than 0.")
        self._keep(
            size=_ranges.sides(self._name("size"), self.size),
            scale=_ranges.interval(self._name("scale"), self.scale, 0),
            ratio=ratio,
            interpolation=_ranges.interpolation(self._name("interpolation"), self.interpolation),
        )


@dataclasses.dataclass(frozen=True)
class Resize(Operation):
    """Resizes: a number is the length of the shorter side, (height, width) are both."""

    size: Size
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        is_number = not isinstance(self.size, Sequence) or len(self.size) == 1
        height, width = _ranges.sides(self._name("size"), self.size)
        self._keep(
            size=height if is_number else (height, width),
            interpolation=_ranges.interpolation(self._name("interpolation"), self.interpolation),
        )


@dataclasses.dataclass(frozen=True)
class CenterCrop(Operation):
    """Cuts out the centre."""

    size: Size

    def __post_init__(self) -> None:
        self._keep(size=_ranges.sides(self._name("size"), self.size))


@dataclasses.dataclass(frozen=True)
class RandomCrop(Operation):
    """Cuts out a part of this size at a random place, after adding a border.

    Args:
        size: Height and width, or one number for both.
        padding: The border: a number, (left and right, top and bottom), or (left, top, right, bottom).
        pad_if_needed: Also add what an image lacks to be as large as `size`.
        fill: The value of a constant border, from 0 to 255, or one for each channel.
        padding_mode: "constant", "edge", "reflect" (without the last pixel) or "symmetric" (with it).
    """

    size: Size
    padding: int | Sequence[int] | None = None
    pad_if_needed: bool = False
    fill: Fill = 0
    padding_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant"

    def __post_init__(self) -> None:
        modes = ("constant", "edge", "reflect", "symmetric")
        self._keep(
            size=_ranges.sides(self._name("size"), self.size),
            padding=_ranges.padding(self._name("padding"), self.padding),
            pad_if_needed=_options.truth(self._name("pad_if_needed"), self.pad_if_needed),
            fill=_ranges.fill(self._name("fill"), self.fill),
            padding_mode=_ranges.word(self._name("padding_mode"), self.padding_mode, modes),
        )


@dataclasses.dataclass(frozen=True)
class RandomHorizontalFlip(_WithProbability):
    """Mirrors left to right, with probability `p`.

    With `alternate`, a random half of the samples is mirrored in even epochs, and the other half in odd ones; `p` is 0.5.
    """

    p: float = 0.5
    alternate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(alternate=_options.truth(self._name("alternate"), self.alternate))
        if self.alternate and self.p != 0.5:
            raise _ranges.refuse(
                self._name("p"), self.p, "With alternate, every sample is mirrored in half of the epochs."
            )


@dataclasses.dataclass(frozen=True)
class RandomVerticalFlip(_WithProbability):
    """Mirrors top to bottom, with probability `p`."""

    p: float = 0.5


@dataclasses.dataclass(frozen=True)
class RandomQuarterTurn(Operation):
    """Turns by 0, 90, 180 or 270 degrees. The image must be square."""


@dataclasses.dataclass(frozen=True)
class RandomRotation(Operation):
    """Rotates by a random angle, counter-clockwise. The size stays the same.

    Args:
        degrees: (min, max), or a number d for (-d, d).
        interpolation: "nearest" or "bilinear".
        expand: Must be False, because all samples of a batch have one size.
        center: (x, y) of the point that stays where it is; None is the centre.
        fill: The value of pixels from outside the image.
    """

    degrees: Range
    interpolation: Interpolation = "nearest"
    expand: bool = False
    center: Sequence[float] | None = None
    fill: Fill = 0

    def __post_init__(self) -> None:
        if _options.truth(self._name("expand"), self.expand):
            raise _ranges.refuse(self._name("expand"), self.expand, "All samples of a batch have one size.")
        self._keep(
            degrees=_ranges.symmetric(self._name("degrees"), self.degrees),
            interpolation=_ranges.interpolation(self._name("interpolation"), self.interpolation, _WARPS),
            center=_point(self._name("center"), self.center),
            fill=_ranges.fill(self._name("fill"), self.fill),
        )


@dataclasses.dataclass(frozen=True)
class RandomAffine(Operation):
    """Rotates, moves, scales and shears by random amounts. The size stays the same.

    Args:
        degrees: Of the rotation: (min, max), or a number d for (-d, d); 0 does not rotate.
        translate: The largest move, as shares of width and height; None does not move.
        scale: (min, max) of the factor; None does not scale.
        shear: Degrees: d for (-d, d) along x, (min, max) along x, or (min, max, min, max) along x and y; None does not.
        interpolation: "nearest" or "bilinear".
        fill: The value of pixels from outside the image.
        center: (x, y) of the point around which it rotates; None is the centre.
    """

    degrees: Range
    translate: Sequence[float] | None = None
    scale: Sequence[float] | None = None
    shear: Range | None = None
    interpolation: Interpolation = "nearest"
    fill: Fill = 0
    center: Sequence[float] | None = None

    def __post_init__(self) -> None:
        translate = _ranges.numbers(self.translate) if self.translate is not None else None
        if self.translate is not None and (
            translate is None or len(translate) != 2 or not all(0 <= each <= 1 for each in translate)
        ):
            raise _ranges.refuse(self._name("translate"), self.translate, "It must be two numbers from 0 to 1.")
        scale = _ranges.optional(_ranges.interval, self._name("scale"), self.scale, 0)
        if scale is not None and scale[0] == 0:
            raise _ranges.refuse(self._name("scale"), self.scale, "Factors must be larger than 0.")
        self._keep(
            degrees=_ranges.symmetric(self._name("degrees"), self.degrees),
            translate=translate,
            scale=scale,
            shear=self._checked_shear(),
            interpolation=_ranges.interpolation(self._name("interpolation"), self.interpolation, _WARPS),
            fill=_ranges.fill(self._name("fill"), self.fill),
            center=_point(self._name("center"), self.center),
        )

    def _checked_shear(self) -> tuple[float, ...] | None:
        if self.shear is None:
            return None
        found = _ranges.numbers(self.shear)
        if found is not None and len(found) == 4:
            return tuple(
                each for pair in (found[:2], found[2:]) for each in _ranges.interval(self._name("shear"), pair)
            )
        return _ranges.symmetric(self._name("shear"), self.shear)


def _point(name: str, value: Any) -> tuple[float, float] | None:
    found = None if value is None else _ranges.numbers(value)
    if value is not None and (found is None or len(found) != 2):
        raise _ranges.refuse(name, value, "It must be (x, y).")
    return None if found is None else (_ranges.number(name, found[0]), _ranges.number(name, found[1]))


# --- colour and the rest ----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ColorJitter(Operation):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    Args:
        brightness, contrast, saturation: (min, max) of the factor, or a number d for (max(0, 1 - d), 1 + d).
        hue: (min, max) of the shift within -0.5 to 0.5, or a number d for (-d, d).

    >>> ColorJitter(0.4, hue=0.1)
    ColorJitter(brightness=(0.6, 1.4), contrast=None, saturation=None, hue=(-0.1, 0.1))
    """

    brightness: Range | None = 0
    contrast: Range | None = 0
    saturation: Range | None = 0
    hue: Range | None = 0

    def __post_init__(self) -> None:
        for field in ("brightness", "contrast", "saturation"):
            self._keep(**{field: _ranges.around(self._name(field), getattr(self, field), 1.0, float("inf"))})
        self._keep(hue=_ranges.around(self._name("hue"), self.hue, 0.0, 0.5, -0.5))


@dataclasses.dataclass(frozen=True)
class RandomGrayscale(_WithProbability):
    """Makes an image grey, with probability `p`. It keeps its channels."""

    p: float = 0.1


@dataclasses.dataclass(frozen=True)
class RandomErasing(_WithProbability):
    """Overwrites a random rectangle, with probability `p`.

    After `Normalize` in a list, the value is written into the floats, as in torchvision. Otherwise it is a pixel.

    Args:
        p: The probability.
        scale: The least and the largest share of the area.
        ratio: The least and the largest aspect of the rectangle.
        value: A number, one for each channel, or "random" for noise.
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | Literal["random"] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        ratio = _ranges.interval(self._name("ratio"), self.ratio, 0)
        if ratio[0] == 0:
            raise _ranges.refuse(self._name("ratio"), self.ratio, "Ratios must be larger than 0.")
        value = self.value
        if not isinstance(value, str) or value != "random":
            found = _ranges.numbers(value)
            if found is None or len(found) not in (1, 3) or not all(abs(each) < float("inf") for each in found):
                hint = "It must be a number, one for each channel, or 'random'."
                raise _ranges.refuse(self._name("value"), value, hint)
            value = found[0] if len(found) == 1 else found
        self._keep(scale=_ranges.interval(self._name("scale"), self.scale, 0, 1), ratio=ratio, value=value)


@dataclasses.dataclass(frozen=True)
class GaussianBlur(Operation):
    """Blurs with a random sigma.

    Args:
        kernel_size: An odd number of pixels, or (along x, along y).
        sigma: (min, max), or one number.
    """

    kernel_size: Size
    sigma: Range = (0.1, 2.0)

    def __post_init__(self) -> None:
        kernel = _ranges.sides(self._name("kernel_size"), self.kernel_size)
        if not all(side % 2 for side in kernel):
            raise _ranges.refuse(self._name("kernel_size"), self.kernel_size, "It must be odd.")
        found = _ranges.numbers(self.sigma)
        sigma = _ranges.interval(self._name("sigma"), found * 2 if found and len(found) == 1 else self.sigma, 0)
        if sigma[0] == 0:
            raise _ranges.refuse(self._name("sigma"), self.sigma, "It must be larger than 0.")
        self._keep(kernel_size=kernel, sigma=sigma)


@dataclasses.dataclass(frozen=True)
class RandomSolarize(_WithProbability):
    """Inverts all values from `threshold` on, with probability `p`."""

    threshold: float
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(threshold=_ranges.number(self._name("threshold"), self.threshold, 0, 256))


@dataclasses.dataclass(frozen=True)
class RandomPosterize(_WithProbability):
    """Keeps the highest `bits` of each value, with probability `p`."""

    bits: int
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(bits=_ranges.whole(self._name("bits"), self.bits, 0, 8))


@dataclasses.dataclass(frozen=True)
class RandomEqualize(_WithProbability):
    """Makes the histogram of each channel flat, with probability `p`."""

    p: float = 0.5


@dataclasses.dataclass(frozen=True)
class RandomAutocontrast(_WithProbability):
    """Stretches each channel to the full range, with probability `p`."""

    p: float = 0.5


@dataclasses.dataclass(frozen=True)
class RandomInvert(_WithProbability):
    """Inverts all values, with probability `p`."""

    p: float = 0.5


@dataclasses.dataclass(frozen=True)
class RandomAdjustSharpness(_WithProbability):
    """Sharpens (a factor above 1) or smooths (below 1), with probability `p`."""

    sharpness_factor: float
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(sharpness_factor=_ranges.number(self._name("sharpness_factor"), self.sharpness_factor, 0))


# --- policies ---------------------------------------------------------------------------------------------------------


class _Policy(Operation):
    interpolation: Interpolation
    fill: Fill

    def __post_init__(self) -> None:
        self._keep(
            interpolation=_ranges.interpolation(self._name("interpolation"), self.interpolation, _WARPS),
            fill=_ranges.fill(self._name("fill"), self.fill),
        )


@dataclasses.dataclass(frozen=True)
class TrivialAugmentWide(_Policy):
    """One random operation of a random strength."""

    num_magnitude_bins: int = 31
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(
            num_magnitude_bins=_ranges.whole(self._name("num_magnitude_bins"), self.num_magnitude_bins, 2, 10000)
        )


@dataclasses.dataclass(frozen=True)
class RandAugment(_Policy):
    """`num_ops` random operations of one strength."""

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        super().__post_init__()
        bins = _ranges.whole(self._name("num_magnitude_bins"), self.num_magnitude_bins, 2, 10000)
        self._keep(
            num_ops=_ranges.whole(self._name("num_ops"), self.num_ops, 1, 16),
            magnitude=_ranges.whole(self._name("magnitude"), self.magnitude, 0, bins - 1),
            num_magnitude_bins=bins,
        )


@dataclasses.dataclass(frozen=True)
class AutoAugment(_Policy):
    """One of the pairs of operations that were learnt on "imagenet", "cifar10" or "svhn"."""

    policy: Literal["imagenet", "cifar10", "svhn"] = "imagenet"
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(policy=_ranges.word(self._name("policy"), self.policy, ("imagenet", "cifar10", "svhn")))


# --- lists ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class RandomApply(_WithProbability):
    """Runs a list of operations with probability `p`, or none of them."""

    transforms: Operation | Sequence[Operation]
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        inner = (self.transforms,) if isinstance(self.transforms, Operation) else self.transforms
        if not isinstance(inner, Sequence) or isinstance(inner, str) or not inner:
            raise _ranges.refuse(self._name("transforms"), self.transforms, "It must be a list of operations.")
        for each in inner:
            if not isinstance(each, Operation) or isinstance(each, Normalize):
                raise InvalidArgument(
                    f"RandomApply has {each!r}", hint="It takes operations of precache.transforms except Normalize."
                )
        self._keep(transforms=tuple(inner))


@dataclasses.dataclass(frozen=True)
class Normalize(Operation):
    """Subtracts `mean` from x/255 and divides by `std`, each a number or one for each channel.

    `Normalize("imagenet")` has those of ImageNet. What comes before it in a list sees pixels.

    >>> Normalize(0.5, 0.25)
    Normalize(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    """

    mean: float | Sequence[float] | Literal["imagenet"]
    std: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        value: Any = "imagenet" if self.mean == "imagenet" and self.std is None else (self.mean, self.std)
        mean, std = _options.normalization(value)
        self._keep(mean=tuple(mean), std=tuple(std))
