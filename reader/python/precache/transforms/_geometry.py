# SPDX-License-Identifier: Apache-2.0
"""Operations that move pixels: crops, resizes, flips, rotations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from .. import _options, _ranges
from ._operation import WARPS, Fill, Interpolation, Operation, Range, Size, WithProbability


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
            raise _ranges.refuse(self._name("ratio"), self.ratio, "two numbers larger than 0")
        scale = _ranges.interval(self._name("scale"), self.scale, 0)
        if scale[1] == 0:
            raise _ranges.refuse(self._name("scale"), self.scale, "(min, max) with a max larger than 0")
        self._keep(
            size=_ranges.sides(self._name("size"), self.size),
            scale=scale,
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
class RandomHorizontalFlip(WithProbability):
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
                self._name("p"), self.p, "0.5 with alternate, which mirrors every sample in half of the epochs"
            )


@dataclasses.dataclass(frozen=True)
class RandomVerticalFlip(WithProbability):
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
            raise _ranges.refuse(
                self._name("expand"), self.expand, "False, because all samples of a batch have one size"
            )
        self._keep(
            degrees=_ranges.symmetric(self._name("degrees"), self.degrees),
            interpolation=_ranges.interpolation(self._name("interpolation"), self.interpolation, WARPS),
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
            raise _ranges.refuse(self._name("translate"), self.translate, "two numbers from 0 to 1")
        scale = _ranges.optional(_ranges.interval, self._name("scale"), self.scale, 0)
        if scale is not None and scale[0] == 0:
            raise _ranges.refuse(self._name("scale"), self.scale, "two numbers larger than 0")
        self._keep(
            degrees=_ranges.symmetric(self._name("degrees"), self.degrees),
            translate=translate,
            scale=scale,
            shear=self._checked_shear(),
            interpolation=_ranges.interpolation(self._name("interpolation"), self.interpolation, WARPS),
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
        raise _ranges.refuse(name, value, "(x, y)")
    return None if found is None else (_ranges.number(name, found[0]), _ranges.number(name, found[1]))
