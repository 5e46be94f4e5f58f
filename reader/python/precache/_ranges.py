# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of operations. Each function returns the one form in which an operation keeps its argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ._errors import InvalidArgument

LARGEST_SIDE = 65535

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
_OF_PILLOW = {0: "nearest", 2: "bilinear", 3: "bicubic"}  # Image.NEAREST, BILINEAR, BICUBIC


def numbers(value: Any) -> tuple[float, ...] | None:
    """The numbers of a sequence, an array or a tensor as floats; of a single number, one; None if it has no numbers."""
    values = value.tolist() if hasattr(value, "tolist") else value
    values = values if isinstance(values, Sequence) and not isinstance(values, str) else [values]
    if any(isinstance(each, (str, bool)) for each in values):
        return None
    try:
        return tuple(float(each) for each in values)
    except (TypeError, ValueError):
        return None


def refuse(name: str, value: Any, wanted: str) -> InvalidArgument:
    """The error for an argument that must be something else."""
    return InvalidArgument(f"{name} must be {wanted}, got {value!r}")


def number(name: str, value: Any, least: float = -math.inf, largest: float = math.inf) -> float:
    """A finite number within bounds."""
    found = numbers(value)
    if found is None or len(found) != 1 or not math.isfinite(found[0]) or not least <= found[0] <= largest:
        raise refuse(name, value, f"a number{_bounds(least, largest)}")
    return found[0]


def probability(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    return number(name, value, 0, 1)


def whole(name: str, value: Any, least: int, largest: int) -> int:
    """A whole number within bounds."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or not least <= found <= largest:
        raise refuse(name, value, f"a whole number from {least} to {largest}")
    return found


def interval(name: str, value: Any, least: float = -math.inf, largest: float = math.inf) -> tuple[float, float]:
    """(min, max), both finite and within bounds."""
    found = numbers(value)
    if (
        found is None
        or len(found) != 2
        or not all(map(math.isfinite, found))
        or not least <= found[0] <= found[1] <= largest
    ):
        raise refuse(name, value, f"(min, max) in this order{_bounds(least, largest)}")
    return found[0], found[1]


def _bounds(least: float, largest: float) -> str:
    if math.isinf(least) and math.isinf(largest):
        return ""
    return f" of at least {least:g}" if math.isinf(largest) else f" from {least:g} to {largest:g}"


def symmetric(name: str, value: Any) -> tuple[float, float]:
    """(min, max); a number d is (-d, d)."""
    found = numbers(value)
    if found is not None and len(found) == 1:
        found = (-found[0], found[0])
        if not found[1] >= 0:
            raise refuse(name, value, "at least 0 as a single number")
    return interval(name, value if found is None else found)


def around(name: str, value: Any, center: float, largest: float, least: float = 0.0) -> tuple[float, float] | None:
    """(min, max) of a factor; a number d is (center - d, center + d), cut at `least`. None where it changes nothing."""
    if value is None:
        return None
    found = numbers(value)
    if found is not None and len(found) == 1:
        if not 0 <= found[0] <= largest:
            raise refuse(name, value, f"a number{_bounds(0, largest)} or (min, max)")
        found = (max(center - found[0], least), center + found[0])
    bounds = interval(name, value if found is None else found, least, largest)
    return None if bounds == (center, center) else bounds


def sides(name: str, value: Any) -> tuple[int, int]:
    """(height, width); a number is both."""
    parts = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if len(parts) not in (1, 2):
        raise refuse(name, value, "a number or (height, width)")
    found = [whole(name, part, 1, LARGEST_SIDE) for part in parts]
    return found[0], found[-1]


def padding(name: str, value: Any) -> tuple[int, int, int, int] | None:
    """(left, top, right, bottom); of a number on all sides, of a pair (left and right, top and bottom)."""
    if value is None:
        return None
    parts = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if len(parts) not in (1, 2, 4):
        raise refuse(name, value, "a number, a pair, or (left, top, right, bottom)")
    found = [whole(name, part, 0, LARGEST_SIDE) for part in parts]
    left, top, right, bottom = found * (4 // len(found))
    return left, top, right, bottom


def fill(name: str, value: Any) -> int | tuple[int, ...] | None:
    """The value of pixels that have no source: None is black, a number is for all channels, or one for each channel."""
    if value is None:
        return None
    found = numbers(value)
    if found is None or len(found) not in (1, 3) or not all(0 <= each <= 255 and each.is_integer() for each in found):
        raise refuse(name, value, "a whole number from 0 to 255, or one for each channel")
    pixels = tuple(map(int, found))
    return pixels[0] if len(pixels) == 1 else pixels


def word(name: str, value: Any, known: Sequence[str]) -> str:
    """One of the known words, also as an enum whose value is the word."""
    found = getattr(value, "value", value)
    if not isinstance(found, str) or found not in known:
        raise refuse(name, value, f"one of {', '.join(map(repr, known))}")
    return found


def interpolation(name: str, value: Any, known: Sequence[str] = INTERPOLATIONS) -> str:
    """The name of a filter, given by name, as torchvision's InterpolationMode, or as a number of Pillow."""
    found = getattr(value, "value", value)
    if isinstance(found, int) and not isinstance(found, bool):
        found = _OF_PILLOW.get(int(found), found)
    if found == "nearest-exact":  # Pillow's nearest
        found = "nearest"
    if found not in known:
        raise refuse(name, value, f"one of {', '.join(map(repr, known))}")
    return str(found)


def optional(check: Callable[..., Any], name: str, value: Any, *bounds: Any) -> Any:
    """None, or what `check` makes of the value."""
    return None if value is None else check(name, value, *bounds)
