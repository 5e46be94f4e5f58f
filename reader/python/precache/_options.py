# SPDX-License-Identifier: Apache-2.0
"""Checks arguments before they reach C++, so that errors use the names of Python."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from ._arrays import Spec
from ._errors import InvalidArgument

DTYPES = ("uint8", "float16", "bfloat16", "float32")
LAYOUTS = ("chw", "hwc")

Numbers = float | Sequence[float]


class HasMeanAndStd(Protocol):
    """An object such as torchvision's Normalize."""

    mean: Any
    std: Any


Normalization = Literal["imagenet"] | tuple[Numbers, Numbers] | HasMeanAndStd


class Crop(NamedTuple):
    """The crop that a loader takes from each sample: at a random place, or the centre."""

    height: int
    width: int
    place: Literal["random", "center"] = "random"


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

LARGEST = 2**64 - 1
LARGEST_SIDE = 2**32 - 1


def count(name: str, value: Any, largest: int = LARGEST, *, least: int = 0) -> int:
    """A whole number from `least` to `largest`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if not least <= number <= largest:
        raise InvalidArgument(f"{name} must be from {least} to {largest}, got {number}")
    return number


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    """One of the `known` words."""
    if not isinstance(value, str) or value not in known:
        raise InvalidArgument(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    return value


def dtype(value: Any) -> str:
    """The name of an element type, given as text or as the type of numpy, torch or JAX."""
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value)).removeprefix("torch.")
    return one_of("dtype", name if name in DTYPES else value, DTYPES)


def truth(name: str, value: Any) -> bool:
    """True or False, from Python or numpy."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def shuffle(value: Any) -> str:
    """ "none", "block" or "full"; True is "full"."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return "full" if value else "none"
    return one_of("shuffle", value, ("none", "block", "full"))


def last_batch(value: Any, drop_last: Any, shuffle: str, world_size: int = 1) -> str:
    """ "drop", "pad", "keep" or "even", or the same by torch's drop_last. Only shuffled epochs drop samples by default.

    Without a choice, several ranks get equal batches, because a rank that has one more waits forever for the others.
    """
    keeps = "keep" if world_size == 1 else "even"
    if drop_last is None:
        default = keeps if shuffle == "none" else "drop"
        return default if value is None else one_of("last_batch", value, ("drop", "pad", "keep", "even"))
    if value is not None:
        raise InvalidArgument("last_batch cannot be combined with drop_last", hint=f"drop_last=False is {keeps!r}.")
    return "drop" if truth("drop_last", drop_last) else keeps


def names(value: Any) -> tuple[str, str]:
    """The two keys of a batch as a dict."""
    if not isinstance(value, (tuple, list)) or len(value) != 2 or not all(isinstance(name, str) for name in value):
        raise InvalidArgument(f"as_dict must be two names such as ('pixel_values', 'labels'), got {value!r}")
    return value[0], value[1]


def columns(value: Any) -> list[str]:
    """The names of columns."""
    if isinstance(value, str) or not all(isinstance(name, str) for name in value):
        raise InvalidArgument(f"columns must be a list of names such as ['mask', 'age'], got {value!r}")
    return list(value)


def weights(value: Any) -> np.ndarray[Any, Any]:
    """A weight for each sample, as float64."""
    try:
        numbers = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1 or numbers.size == 0:
        raise InvalidArgument(f"weights must have one number for each sample, got {value!r}")
    return numbers


def paths(path: Any) -> list[str]:
    """One path or several, as a list."""
    if isinstance(path, (str, bytes, os.PathLike)):
        path = [path]
    if not isinstance(path, Iterable):
        raise TypeError(f"the argument must be a path or a list of paths, got {path!r}")
    decoded = [os.fsdecode(one) for one in path]
    for one in decoded:
        if "\0" in one:
            raise InvalidArgument(f"a path must not contain a null character, got {one!r}")
    return decoded


def spec(value: Any) -> Spec:
    """dtype, layout and shape."""
    try:
        element, layout, (first, second, third) = value
    except (TypeError, ValueError):
        raise InvalidArgument(f"spec must be such as Spec('uint8', 'chw', (3, 224, 224)), got {value!r}") from None
    first, second, third = (count("a side of spec", side, LARGEST_SIDE) for side in (first, second, third))
    return Spec(dtype(element), one_of("layout", layout, LAYOUTS), (first, second, third))


def crop(value: Any) -> tuple[int, int, str]:
    """N, (height, width) or (height, width, place)."""
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(parts) == 2:
        parts += ("random",)
    if len(parts) != 3:
        raise InvalidArgument(f"crop must be N, (height, width) or (height, width, 'center'), got {value!r}")
    height, width = (count("a side of crop", side, LARGEST_SIDE) for side in parts[:2])
    return height, width, one_of("the place of crop", parts[2], ("random", "center"))


def mean_and_std(value: Any) -> Any:
    """(mean, std) of an object that has them, such as torchvision's Normalize; other values unchanged."""
    mean, std = getattr(value, "mean", None), getattr(value, "std", None)
    return value if mean is None or std is None or callable(mean) else (mean, std)


def normalization(value: Any, stored: str = "uint8") -> tuple[list[float], list[float]]:
    """Mean and standard deviation, each for three channels, of elements that are stored as this type."""
    if isinstance(value, str) and value == "imagenet":
        value = IMAGENET
    try:
        mean, std = (np.asarray(numbers) for numbers in mean_and_std(value))
    except (TypeError, ValueError):
        mean = std = np.asarray(None)
    if any(numbers.dtype.kind not in "iuf" or numbers.shape not in ((), (1,), (3,)) for numbers in (mean, std)):
        wanted = "'imagenet' or (mean, std), each a number or three"
        raise InvalidArgument(f"normalize must be {wanted}, got {value!r}")
    for noun, numbers, most in ("mean", mean, 1), ("standard deviation", std, 10):  # as check_unit_range() in C++
        if stored == "uint8" and most < numbers.max(initial=0) < np.inf:
            raise InvalidArgument(
                f"normalize has a {noun} of {numbers.max():g}, but it applies to x/255, which is between 0 and 1",
                hint="Divide means and standard deviations by 255.",
            )
    return np.broadcast_to(mean, 3).tolist(), np.broadcast_to(std, 3).tolist()
