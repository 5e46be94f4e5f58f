# SPDX-License-Identifier: Apache-2.0
"""Types of the keyword arguments that functions pass on. Only type checkers import this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

from ._arrays import Spec
from ._dataset import Array
from ._options import Crop, Normalization


class OpenOptions(TypedDict, total=False):
    """Options of `precache.open`."""

    writable: bool
    spec: Spec | None
    verify_on_read: bool
    image_key: str | None
    label_key: str | None
    labels: Literal["none"] | None
    indices: Sequence[int] | Array | None
    only_classes: Sequence[str | int] | None
    max_open_shards: int
    scan_threads: int


class SplitOptions(OpenOptions, total=False):
    """The same with the split, for functions that take it by keyword."""

    split: str | None


class LoaderOptions(TypedDict, total=False):
    """Options of `precache.Loader` that all loaders take."""

    split: str | None
    shuffle: Literal["block", "full"] | bool | None
    weights: Sequence[float] | Array | None
    seed: int
    last_batch: Literal["drop", "pad", "keep", "even"] | None
    drop_last: bool | None
    crop: int | tuple[int, int] | Crop | None
    flip: bool
    normalize: Normalization | None
    dtype: Any
    threads: int
    prefetch: int
    block_rows: int
    window_blocks: int


class HookOptions(LoaderOptions, total=False):
    """The same with hooks that run in the caller."""

    batch_transform: Callable[..., Any] | None
    as_dict: tuple[str, str] | None


class PlacedLoaderOptions(LoaderOptions, total=False):
    """The same, for loaders that also take a rank and a layout."""

    rank: int
    world_size: int
    layout: Literal["chw", "hwc"] | None
    writable: bool
