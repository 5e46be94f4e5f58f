# SPDX-License-Identifier: Apache-2.0
"""Reads the `transform` of a loader: what runs for each sample, and which steps the shards make unnecessary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from . import _torchvision
from . import transforms as ours
from ._arrays import Spec
from ._errors import InvalidArgument
from ._stored import Size, Stored, short
from ._torchvision import Grayscale, Note, Nothing, Pad, PaddedTwice, ResizeByFilter, Step, ToFloat, refused

_SETS_SIZE = (ours.RandomResizedCrop, ours.Resize, ours.CenterCrop, ours.RandomCrop, ResizeByFilter, PaddedTwice)
# These give the same result before and after Normalize.
_MOVES_PIXELS = (ours.RandomHorizontalFlip, ours.RandomVerticalFlip, ours.RandomQuarterTurn, ours.CenterCrop)


@dataclasses.dataclass(frozen=True)
class Translation:
    """The result of reading a `transform`; `str()` of it is a list for people.

    Attributes:
        operations: What runs for each sample, in this order.
        after_normalize: How many of these, at the end, change the floats that Normalize gives.
        normalize: Mean and standard deviation, or None.
        dtype: The type that the list asks for, or None.
        dropped: (step, reason) of each step that does not run.
        notes: What differs from the list.
        warnings: What differs because of the way the shards were built. The loader warns of it when it is made.
    """

    operations: tuple[ours.Operation, ...] = ()
    after_normalize: int = 0
    normalize: ours.Normalize | None = None
    dtype: str | None = None
    dropped: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        before = len(self.operations) - self.after_normalize
        lines = [f"runs     {each}" for each in self.operations[:before]]
        lines += [f"runs     {self.normalize}"] if self.normalize is not None else []
        lines += [f"runs     {each}" for each in self.operations[before:]]
        lines += [f"dropped  {step}: {reason}" for step, reason in self.dropped]
        lines += [f"note     {note}" for note in self.notes]
        lines += [f"warning  {warning}" for warning in self.warnings]
        return "\n".join(lines) or "nothing runs"


def translate(transform: Any, stored: Spec, recipe: Mapping[str, Any]) -> Translation:
    """Reads a list of operations, one operation, or a Compose of torchvision, for samples of this spec and recipe.

    Raises InvalidArgument for a step that cannot run, with its name and what to do.
    """
    reading = _Reading(Stored.of(stored, recipe))
    steps = _steps(transform)
    for number, step in enumerate(steps):
        following = next((each for each in steps[number + 1 :] if isinstance(each, _SETS_SIZE)), None)
        reading.add(step, before_random_resized_crop=isinstance(following, ours.RandomResizedCrop))
    return reading.result()


def _steps(value: Any) -> list[Any]:
    """The steps of a transform, those of nested lists included."""
    if value is None:
        return []
    if isinstance(value, (ours.Operation, Step)):
        return [value]
    inner = list(value) if isinstance(value, (list, tuple)) else _torchvision.children(value)
    if inner is not None:
        return [step for each in inner for step in _steps(each)]
    if isinstance(value, type):
        raise refused(f"the class {value.__name__}", f"Give an object: {value.__name__}(...).")
    if _torchvision.is_torchvision(value):
        return [_torchvision.operation(value, _operations_of_random_apply), *_torchvision.notes(value)]
    package = _torchvision.module_of(value).partition(".")[0]
    if package == "albumentations":
        hint = "Use operations of precache.transforms or torchvision.transforms."
        raise refused(f"{type(value).__name__} of albumentations", f"{hint} {_torchvision.KEEP}")
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    raise refused(f"{name} of {package}" if package not in ("", "__main__", "builtins") else name)


def _operations_of_random_apply(steps: list[Any]) -> list[ours.Operation]:
    found: list[ours.Operation] = []
    for step in _steps(steps):
        if isinstance(step, Grayscale) and step.channels == 3:
            found.append(ours.RandomGrayscale(1.0))
        elif isinstance(step, ours.Operation) and not isinstance(step, ours.Normalize):
            found.append(step)
        elif not isinstance(step, (Nothing, Note)):
            raise refused(f"RandomApply of {type(step).__name__}", "Take it out of RandomApply.")
    return found


class _Reading:
    """The state while the steps of a list are read."""

    def __init__(self, stored: Stored):
        self._stored = stored
        self._size: Size = stored.size  # of the images after the steps that were read
        self._resize_was_dropped = False
        self._sets_size = False  # by an operation that runs
        self._stage: Literal["pixels", "floats", "normalized"] = "pixels"
        self._operations: list[ours.Operation] = []
        self._erasings: list[ours.RandomErasing] = []  # of the floats
        self._normalize: ours.Normalize | None = None
        self._dtype: str | None = None
        self._pad: Pad | None = None
        self._dropped: list[tuple[str, str]] = []
        self._notes: list[str] = []
        self._warnings: list[str] = []

    def result(self) -> Translation:
        if self._pad is not None:
            raise refused("Pad without a RandomCrop after it", "Build the shards with fit='pad', or crop after it.")
        return Translation(
            operations=(*self._operations, *self._erasings),
            after_normalize=len(self._erasings),
            normalize=self._normalize,
            dtype=self._dtype,
            dropped=tuple(self._dropped),
            notes=tuple(self._notes),
            warnings=tuple(self._warnings),
        )

    def add(self, step: Any, *, before_random_resized_crop: bool) -> None:
        if isinstance(step, PaddedTwice):
            step = self._padded_once(step.crop)
        if isinstance(step, Note):
            self._notes.append(step.text)
            return
        if self._pad is not None and not isinstance(step, (ours.RandomCrop, Nothing)):
            raise refused("Pad without a RandomCrop after it", "Build the shards with fit='pad', or crop after it.")
        if isinstance(step, Nothing):
            self._dropped.append((step.name, step.reason))
        elif isinstance(step, ToFloat):
            self._to_float(step)
        elif isinstance(step, Pad):
            self._pad = step
        elif isinstance(step, Grayscale):
            self._grayscale(step)
        elif isinstance(step, ours.Normalize):
            self._set_normalize(step)
        elif isinstance(step, ours.RandomErasing):
            self._erase(step)
        elif not self._is_done_by_shards(step, before_random_resized_crop):
            self._run(step)

    def _to_float(self, step: ToFloat) -> None:
        if self._stage == "pixels":
            self._stage = "floats"
        self._dtype = step.dtype

    def _grayscale(self, step: Grayscale) -> None:
        wanted = step.channels or 3
        if wanted == self._stored.channels and (step.channels == 0 or wanted == 1):
            self._dropped.append(("RGB" if step.channels == 0 else "Grayscale", f"Samples have {wanted} channels."))
        elif wanted == 3 and self._stored.channels == 3:
            self._run(ours.RandomGrayscale(1.0))
        else:
            color = "gray" if wanted == 1 else "rgb"
            raise refused(
                f"a step that makes {wanted} channel{'s' if wanted != 1 else ''}, but the samples have {self._stored.channels}",
                f"Build the shards with color='{color}'.",
            )

    def _set_normalize(self, step: ours.Normalize) -> None:
        if self._normalize is not None:
            raise refused("more than one Normalize", "Combine their means and standard deviations in one.")
        self._erasings_become_pixels("Normalize")
        self._stage = "normalized"
        known = self._stored.normalize
        if isinstance(known, Mapping) and _equal(known.get("mean"), step.mean) and _equal(known.get("std"), step.std):
            self._dropped.append(("Normalize", "The shards are normalised with these numbers."))
        else:
            self._normalize = step

    def _erase(self, step: ours.RandomErasing) -> None:
        if self._stage == "pixels":
            self._run(step)
        else:
            self._erasings.append(step)

    def _erasings_become_pixels(self, next_step: str) -> None:
        """Erasings of floats come last. Others must have a value that is a pixel, too."""
        for step in self._erasings:
            pixels = None if self._stage == "normalized" else _pixels(step.value)
            if pixels is None:
                raise refused(f"RandomErasing before {next_step}", "Put RandomErasing at the end of the list.")
            self._operations.append(dataclasses.replace(step, value=pixels))
        self._erasings.clear()

    def _is_done_by_shards(self, step: ours.Operation, before_random_resized_crop: bool) -> bool:
        """Drops a step at the beginning of the list that is not needed."""
        if self._operations:
            if isinstance(step, ResizeByFilter):
                raise refused(f"{short(step)} with the filter {step.interpolation}", "Use bilinear or bicubic.")
            if isinstance(step, ours.Resize) and not self._sets_size and not before_random_resized_crop:
                self._stored.check_aspect(step)
            return False
        done = self._stored.done(step, before_random_resized_crop)
        if done is None:
            return False
        self._dropped.append((short(step), done.reason))
        if done.warning is not None:
            self._warnings.append(done.warning)
        self._resize_was_dropped = self._resize_was_dropped or not isinstance(step, ours.CenterCrop)
        return True

    def _run(self, step: ours.Operation) -> None:
        name = type(step).__name__
        self._erasings_become_pixels(name)
        if self._stage == "normalized" and not isinstance(step, _MOVES_PIXELS) and not _is_plain_crop(step):
            raise refused(f"{name} after Normalize", f"Put {name} before Normalize.")
        if isinstance(step, ours.RandomCrop) and self._pad is not None:
            step = self._padded(step, self._pad)
            self._pad = None
        self._set_size(step)
        if self._stage == "floats":
            step = _of_pixels(step)
            if not isinstance(step, _MOVES_PIXELS) and not _is_plain_crop(step):
                self._notes.append(f"{name} computes with pixels of 8 bits, as if it came before the step to floats.")
        self._operations.append(step)

    def _set_size(self, step: ours.Operation) -> None:
        if not isinstance(step, _SETS_SIZE):
            return
        if self._resize_was_dropped and isinstance(step, (ours.CenterCrop, ours.RandomCrop)):
            self._check_room(step, getattr(step, "padding", None) or (0, 0, 0, 0))
        self._sets_size = True
        size: Any = step.size
        if isinstance(size, int):
            shorter = min(self._size)
            size = tuple(size * side // shorter for side in self._size)
        self._size = size

    def _check_room(self, crop: ours.CenterCrop | ours.RandomCrop, padding: Any) -> None:
        """Refuses a crop of what a dropped resize has made, if the shards did not keep enough of it."""
        left, top, right, bottom = padding
        size: Any = crop.size
        if self._sets_size or (size[0] <= self._size[0] + top + bottom and size[1] <= self._size[1] + left + right):
            return
        wanted = f"{size[0]}x{size[1]}"
        raise InvalidArgument(
            f"{short(crop)} is larger than the stored {self._stored.text} images",
            hint=f"Build the shards with a size of at least {wanted}, or crop less.",
        )

    def _padded_once(self, crop: ours.RandomCrop) -> ours.RandomCrop:
        """The crop, if the images are large enough for it with its first border."""
        padding: Any = crop.padding
        left, top, right, bottom = padding
        size: Any = crop.size
        if size[0] > self._size[0] + top + bottom or size[1] > self._size[1] + left + right:
            raise refused(
                f"RandomCrop of torchvision.transforms with padding, pad_if_needed and padding_mode={crop.padding_mode!r}",
                "It mirrors its own border. Use torchvision.transforms.v2, or give all of the border as padding.",
            )
        return crop

    def _padded(self, step: ours.RandomCrop, pad: Pad) -> ours.RandomCrop:
        if step.padding is not None and any(step.padding):  # type: ignore[arg-type]
            raise refused("Pad before a RandomCrop with padding", "Give all of the border to RandomCrop.")
        if step.pad_if_needed:
            raise refused("Pad before a RandomCrop with pad_if_needed", "Give the border to RandomCrop.")
        return dataclasses.replace(step, padding=pad.padding, fill=pad.fill, padding_mode=pad.padding_mode)


def _is_plain_crop(step: ours.Operation) -> bool:
    """Whether it is a crop that makes no new values."""
    if not isinstance(step, ours.RandomCrop):
        return False
    return step.padding_mode != "constant" or (step.padding is None and not step.pad_if_needed)


def _of_pixels(step: ours.Operation) -> ours.Operation:
    """The step for pixels from 0 to 255, of one for floats from 0 to 1."""
    changed: dict[str, Any] = {}
    if getattr(step, "fill", None):
        changed["fill"] = _pixels(step.fill)  # type: ignore[attr-defined]
        if changed["fill"] is None:
            raise refused(f"{type(step).__name__} of floats with a fill that is not a pixel", "Put it before ToTensor.")
    if isinstance(step, ours.RandomSolarize):
        changed["threshold"] = step.threshold * 255
    return dataclasses.replace(step, **changed) if changed else step  # type: ignore[type-var]


def _pixels(value: Any) -> Any:
    """Values from 0 to 1 as pixels; None if one is not a pixel."""
    if isinstance(value, str):
        return None
    scaled = np.asarray(value, dtype=np.float64) * 255
    if (np.abs(scaled - scaled.round()) > 1e-3).any() or scaled.min() < 0 or scaled.max() > 255:
        return None
    return scaled.round().tolist()


def _equal(known: Any, given: Any) -> bool:
    try:
        return bool(np.array_equal(np.broadcast_to(np.asarray(known, np.float32), 3), np.asarray(given, np.float32)))
    except (TypeError, ValueError):
        return False
