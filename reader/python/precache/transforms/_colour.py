# SPDX-License-Identifier: Apache-2.0
"""Operations that change values: colour, blur, erasing, normalisation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from .. import _options, _ranges
from ._operation import Operation, Range, Size, WithProbability


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
class RandomGrayscale(WithProbability):
    """Makes an image grey, with probability `p`. It keeps its channels."""

    p: float = 0.1


@dataclasses.dataclass(frozen=True)
class RandomErasing(WithProbability):
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
            raise _ranges.refuse(self._name("ratio"), self.ratio, "two numbers larger than 0")
        value = self.value
        if not isinstance(value, str) or value != "random":
            found = _ranges.numbers(value)
            if found is None or len(found) not in (1, 3) or not all(abs(each) < float("inf") for each in found):
                wanted = "a number, one for each channel, or 'random'"
                raise _ranges.refuse(self._name("value"), value, wanted)
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
            raise _ranges.refuse(self._name("kernel_size"), self.kernel_size, "odd")
        found = _ranges.numbers(self.sigma)
        sigma = _ranges.interval(self._name("sigma"), found * 2 if found and len(found) == 1 else self.sigma, 0)
        if sigma[0] == 0:
            raise _ranges.refuse(self._name("sigma"), self.sigma, "larger than 0")
        self._keep(kernel_size=kernel, sigma=sigma)


@dataclasses.dataclass(frozen=True)
class RandomSolarize(WithProbability):
    """Inverts all values from `threshold` on, with probability `p`."""

    threshold: float
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(threshold=_ranges.number(self._name("threshold"), self.threshold, 0, 256))


@dataclasses.dataclass(frozen=True)
class RandomPosterize(WithProbability):
    """Keeps the highest `bits` of each value, with probability `p`."""

    bits: int
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(bits=_ranges.whole(self._name("bits"), self.bits, 0, 8))


@dataclasses.dataclass(frozen=True)
class RandomEqualize(WithProbability):
    """Makes the histogram of each channel flat, with probability `p`."""

    p: float = 0.5


@dataclasses.dataclass(frozen=True)
class RandomAutocontrast(WithProbability):
    """Stretches each channel to the full range, with probability `p`."""

    p: float = 0.5


@dataclasses.dataclass(frozen=True)
class RandomInvert(WithProbability):
    """Inverts all values, with probability `p`."""

    p: float = 0.5


@dataclasses.dataclass(frozen=True)
class RandomAdjustSharpness(WithProbability):
    """Sharpens (a factor above 1) or smooths (below 1), with probability `p`."""

    sharpness_factor: float
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(sharpness_factor=_ranges.number(self._name("sharpness_factor"), self.sharpness_factor, 0))


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
