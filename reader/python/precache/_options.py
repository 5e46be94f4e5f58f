# SPDX-License-Identifier: Apache-2.0
"""Values that callers give, checked before they reach C++: what is refused is named as the caller named it."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ._arrays import Spec
from ._errors import InvalidArgument

DTYPES = ("uint8", "float16", "bfloat16", "float32")
LAYOUTS = ("chw", "hwc")

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

LARGEST = 2**64 - 1
LARGEST_SIDE = 2**32 - 1


def count(name: str, value: Any, largest: int = LARGEST, *, least: int = 0) -> int:
    """A number from `least` to `largest`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, not a whole number") from None
    if not least <= number <= largest:
        raise InvalidArgument(f"{name} is {number}", hint=f"It can be {least} to {largest}.")
    return number


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in known:
        raise InvalidArgument(f"{name} is {value!r}", hint=f"Known are {', '.join(map(repr, known))}.")
    return value


def dtype(value: Any) -> str:
    """The name of an element type: as text, or as numpy, torch or JAX have it."""
    name = value if isinstance(value, str) else getattr(value, "__name__", str(value)).removeprefix("torch.")
    return one_of("dtype", name if name in DTYPES else value, DTYPES)


def truth(name: str, value: Any) -> bool:
    """True or False, of Python or numpy."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}, not True or False")
    return bool(value)


def last_batch(value: Any, drop_last: Any) -> str:
    """"drop", "pad" or "keep", or the same by torch's drop_last."""
    if drop_last is None:
        return "drop" if value is None else one_of("last_batch", value, ("drop", "pad", "keep"))
    if value is not None:
        raise InvalidArgument("both last_batch and drop_last are given", hint="drop_last=False is last_batch='keep'.")
    return "drop" if truth("drop_last", drop_last) else "keep"


def paths(path: Any) -> list[str]:
    """One path, or several."""
    if isinstance(path, (str, bytes, os.PathLike)):
        path = [path]
    if not isinstance(path, Iterable):
        raise TypeError(f"{path!r} is neither a path nor a list of paths")
    decoded = [os.fsdecode(one) for one in path]
    for one in decoded:
        if "\0" in one:
            raise InvalidArgument(f"a path with a null character: {one!r}")
    return decoded


def spec(value: Any) -> Spec:
    """dtype, layout and shape."""
    try:
        element, layout, (first, second, third) = value
    except (TypeError, ValueError):
        raise InvalidArgument(f"spec is {value!r}", hint="Use Spec(dtype, layout, (3, 224, 224)).") from None
    first, second, third = (count("a side of spec", side, LARGEST_SIDE) for side in (first, second, third))
    return Spec(dtype(element), one_of("layout", layout, LAYOUTS), (first, second, third))


def crop(value: Any) -> tuple[int, int, str]:
    """N, (height, width) or (height, width, place)."""
    parts = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(parts) == 2:
        parts += ("random",)
    if len(parts) != 3:
        raise InvalidArgument(f"crop is {value!r}", hint="Use N, (height, width) or (height, width, 'center').")
    height, width = (count("a side of crop", side, LARGEST_SIDE) for side in parts[:2])
    return height, width, one_of("the place of crop", parts[2], ("random", "center"))


def normalization(value: Any) -> tuple[list[float], list[float]]:
    """Mean and standard deviation, each for three channels."""
    if isinstance(value, str) and value == "imagenet":
        value = IMAGENET
    try:
        mean, std = (np.asarray(numbers) for numbers in value)
    except (TypeError, ValueError):
        mean = std = np.asarray(None)
    if any(numbers.dtype.kind not in "iuf" or numbers.shape not in ((), (1,), (3,)) for numbers in (mean, std)):
        hint = "Use 'imagenet' or (mean, std), each a number or three."
        raise InvalidArgument(f"normalize is {value!r}", hint=hint)
    return np.broadcast_to(mean, 3).tolist(), np.broadcast_to(std, 3).tolist()
