# SPDX-License-Identifier: Apache-2.0
"""Facts about stored images, and which steps at the beginning of a list they make unnecessary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from . import transforms as ours
from ._arrays import Spec, size_of
from ._torchvision import ResizeByFilter, refused

Size = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Done:
    """Why a step is not needed, and what differs from running it on the originals."""

    reason: str
    warning: str | None = None


@dataclasses.dataclass(frozen=True)
class Stored:
    """Facts about the images of shards. Those of the recipe are None if the shards do not tell.

    Attributes:
        size: Height and width.
        channels: 1 or 3.
        fit: How build made images of one size: "crop", "stretch" or "pad".
        resize: The length of the shorter side before build cropped.
        filter: The filter of that resize.
        normalize: Mean and standard deviation of stored floats.
    """

    size: Size
    channels: int
    fit: str | None = None
    resize: int | None = None
    filter: str | None = None
    normalize: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, spec: Spec, recipe: Mapping[str, Any]) -> Stored:
        """The facts by the spec of samples and the recipe of their dataset, which may lack keys."""
        channels = spec.shape[0] if spec.layout == "chw" else spec.shape[2]
        size = size_of(spec)
        # A recipe for another size does not tell how these images came to theirs.
        names = ("fit", "resize", "filter") if recipe.get("size", list(size)) == list(size) else ("fit",)
        known = {name: recipe.get(name) for name in (*names, "normalize")}
        return cls(size, channels, **known)

    @property
    def text(self) -> str:
        """The size as text: "224x224"."""
        return f"{self.size[0]}x{self.size[1]}"

    def done(self, step: Any, before_random_resized_crop: bool) -> Done | None:
        """Why a step that is the first to run is not needed; None if it is.

        Raises InvalidArgument for a resize that makes other pixels of these images than of the originals.
        """
        if isinstance(step, ours.CenterCrop):
            return Done(f"The stored images are {self.text} already.") if step.size == self.size else None
        if not isinstance(step, (ours.Resize, ResizeByFilter)):
            return None
        done = self._resized(step, before_random_resized_crop)
        if done is None or self.filter in (None, step.interpolation):
            if done is None and isinstance(step, ResizeByFilter):
                raise _filter_refused(step, f"The shards have images of {self.text}.")
            return done
        if isinstance(step, ResizeByFilter):
            raise _filter_refused(step, f"The shards were built with filter={self.filter!r}.")
        differs = f"{short(step)} is dropped: build resized with the filter {self.filter}, not {step.interpolation}."
        reason = f"{done.reason.removesuffix('.')}, with the filter {self.filter}."
        return Done(reason, f"{done.warning} {differs}" if done.warning else differs)

    def _resized(self, step: Any, before_random_resized_crop: bool) -> Done | None:
        size, side = step.size, min(self.size)
        if isinstance(size, int) and self.fit == "crop" and size == self.resize:
            return Done(f"The build already resized the shorter side to {size}.")
        if size in (self.size, side):
            return Done(
                f"The stored images are {self.text} already.", self._difference(step, before_random_resized_crop)
            )
        if not before_random_resized_crop:
            self.check_aspect(step)
        elif self.fit == "stretch" and isinstance(size, int) and size > side:
            return Done(f"RandomResizedCrop cuts from the stored images, which are {self.text}.")
        return None

    def check_aspect(self, step: Any) -> None:
        """Refuses a resize of the shorter side of images that were stretched."""
        size = step.size
        if self.fit != "stretch" or not isinstance(size, int) or size == min(self.size):
            return
        raise refused(
            f"Resize({size}) of images that were stretched to {self.text}",
            f"It would keep the stretched aspect. Use RandomResizedCrop, give both sides as in Resize(({size}, "
            f"{size})), or build the shards with fit='crop' and resize={size}.",
        )

    def _difference(self, step: Any, before_random_resized_crop: bool) -> str | None:
        """The difference between the stored images and a resize of the originals to their size, if there is one."""
        if self.fit not in ("crop", "stretch", "pad") or (
            self.fit == "stretch" and (step.size == self.size or before_random_resized_crop)
        ):
            return None
        name = short(step)
        if self.fit == "stretch":
            return f"{name} is dropped: it keeps the aspect of images, and build stretched them to {self.text}."
        kept = "the centre of each image" if self.fit == "crop" else "each image with a border"
        return f"{name} is dropped: the stored images of {self.text} are {kept} (fit={self.fit!r})."


def _filter_refused(step: ResizeByFilter, found: str) -> Exception:
    name = step.interpolation
    build = f"build the shards with filter={name!r} and this size, or " if name in ("box", "lanczos") else ""
    hint = f"{found} To resize, {build}use bilinear or bicubic."
    return refused(f"{short(step)} with the filter {name}", hint)


def short(step: Any) -> str:
    """The step with its size."""
    size = step.size
    name = "Resize" if isinstance(step, ResizeByFilter) else type(step).__name__
    return f"{name}({size if isinstance(size, int) or size[0] != size[1] else size[0]})"
