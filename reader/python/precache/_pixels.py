# SPDX-License-Identifier: Apache-2.0
"""Changes that a loader makes to pixels: `transform`, `views`, or `crop` and `flip`, with `normalize` and `dtype`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _native, _options, _ranges, transforms
from ._dataset import Dataset
from ._errors import InvalidArgument
from ._translate import Translation, translate

Size = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Pixels:
    """The options of the C++ library, and the lists that they were made of: one without `views`."""

    native: dict[str, Any]
    lists: tuple[Translation, ...]
    has_views: bool

    @property
    def transforms(self) -> tuple[Translation, ...]:
        """The lists, with the operations that the shorthands stand for."""
        shorthands = tuple(_crops(self.native["crop"]))
        shorthands += (transforms.RandomHorizontalFlip(),) if self.native["flip"] else ()
        values = self.native["normalize"]
        normalize = None if values is None else transforms.Normalize(*values)
        return tuple(
            dataclasses.replace(each, operations=shorthands + each.operations, normalize=normalize)
            for each in self.lists
        )


def pixels(dataset: Dataset, transform: Any, views: Any, crop: Any, flip: Any, normalize: Any, dtype: Any) -> Pixels:
    """Checks the options against each other. Raises InvalidArgument if they contradict each other."""
    _refuse_two(transform=transform, views=views)
    for name, value in (("transform", transform), ("views", views)):
        if value is not None:
            _refuse_two(**{name: value, "crop": crop, "flip": None if flip is False else flip})
    if isinstance(flip, str) and flip == "alternate":
        transform, crop, flip = [*_crops(crop), transforms.RandomHorizontalFlip(alternate=True)], None, False
    crop = None if crop is None else _options.crop(crop)
    flip = _options.truth("flip", flip)

    recipe: Mapping[str, Any] = json.loads(dataset._native.recipe)
    lists = [transform] if views is None else _lists(views)
    found = [translate(each, dataset.spec, recipe) for each in lists]
    mean_and_std, element = _values(found, normalize, dtype, dataset.spec.dtype)
    augmentations = [_native.augmentation(each) for each in found]
    native = {
        "crop": crop,
        "flip": flip,
        "normalize": mean_and_std,
        "dtype": element,
        "augmentation": augmentations[0] if views is None else [],
        "views": [] if views is None else augmentations,
    }
    return Pixels(native, tuple(found), views is not None)


def _refuse_two(**given: Any) -> None:
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        hint = "Put the operations into one list."
        raise InvalidArgument(f"{names[0]} cannot be combined with {names[1]}", hint=hint)


def _crops(crop: Any) -> list[transforms.Operation]:
    """The operation that does what `crop` does."""
    if crop is None:
        return []
    height, width, place = _options.crop(crop)
    kind = transforms.CenterCrop if place == "center" else transforms.RandomCrop
    return [kind((height, width))]


def _lists(views: Any) -> list[Any]:
    if not isinstance(views, Sequence) or isinstance(views, str) or not views:
        raise InvalidArgument(f"views must be a list of lists of operations, one for each view, got {views!r}")
    return list(views)


def _values(found: list[Translation], normalize: Any, dtype: Any, stored: str) -> tuple[Any, str | None]:
    """Mean and standard deviation, and the type, of all views."""
    if len({each.normalize for each in found}) > 1:
        raise InvalidArgument("all views must use the same Normalize")
    if len({each.dtype for each in found}) > 1:
        raise InvalidArgument("all views must convert to the same dtype", hint="Use the same steps to floats in each.")
    if normalize is not None and found[0].normalize is not None:
        raise InvalidArgument("normalize cannot be combined with a Normalize in the list")
    given = found[0].normalize if normalize is None else normalize
    mean_and_std = None if given is None else _options.normalization(given, stored)
    if dtype is not None:
        element = _options.dtype(dtype)
        if element == "uint8" and found[0].dtype is not None:
            raise InvalidArgument("dtype='uint8' cannot be combined with a list that makes floats")
        return mean_and_std, element
    return mean_and_std, found[0].dtype or (None if mean_and_std is None else "float32")


class Schedule:
    """The size of samples in each epoch, from {first epoch: size} or a function of the epoch."""

    def __init__(self, sizes: Mapping[int, Any] | Callable[[int], Any]):
        if not callable(sizes) and (not isinstance(sizes, Mapping) or not sizes):
            wanted = "{first epoch: size} or a function of the epoch"
            raise InvalidArgument(f"size must be {wanted}, got {sizes!r}")
        self._function = sizes if callable(sizes) else None
        changes = {} if callable(sizes) else sizes
        #: (epoch, height, width) of each change that is known beforehand.
        self.changes = [(_options.count("an epoch of size", epoch), *_side(size)) for epoch, size in changes.items()]

    @property
    def of_epoch(self) -> Callable[[int], Size | None] | None:
        """The size of an epoch, by a function; None is the size of the list. None if there is no function."""
        return None if self._function is None else self._of_epoch

    def _of_epoch(self, epoch: int) -> Size | None:
        assert self._function is not None
        size = self._function(epoch)
        return None if size is None else _side(size)


def _side(size: Any) -> Size:
    return _ranges.sides("size", size)
