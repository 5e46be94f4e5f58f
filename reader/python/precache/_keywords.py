# SPDX-License-Identifier: Apache-2.0
"""Types of the keyword arguments that functions pass on. Only type checkers import this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from . import _commands
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
    rank: int | None
    world_size: int | None
    last_batch: Literal["drop", "pad", "keep", "even"] | None
    drop_last: bool | None
    transform: Any
    size: Mapping[int, int | tuple[int, int]] | Callable[[int], int | tuple[int, int] | None] | None
    max_size: int | tuple[int, int] | None
    repeats: int
    crop: int | tuple[int, int] | Crop | None
    flip: bool | Literal["alternate"]
    normalize: Normalization | None
    dtype: Any
    threads: int
    prefetch: int
    columns: Sequence[str] | None
    mask_fill: int | None
    block_rows: int
    window_blocks: int


class HookOptions(LoaderOptions, total=False):
    """The same with hooks that run in the caller."""

    batch_transform: Callable[..., Any] | None
    as_dict: tuple[str, str] | None


class TorchLoaderOptions(HookOptions, total=False):
    """The same with those arguments of torch's DataLoader that have no effect."""

    num_workers: int
    persistent_workers: bool
    prefetch_factor: int | None
    worker_init_fn: Callable[[int], Any] | None
    generator: Any
    multiprocessing_context: Any
    timeout: float
    pin_memory_device: str
    in_order: bool


class LayoutOptions(LoaderOptions, total=False):
    """The same, for loaders that take a layout."""

    views: Sequence[Any] | None
    layout: Literal["chw", "hwc"] | None
    writable: bool


class BuildOptions(TypedDict, total=False):
    """Options of `precache.build` that say what is built."""

    size: int | tuple[int, int] | str
    fit: Literal["crop", "stretch", "pad"]
    resize: int | None
    filter: Literal["nearest", "box", "bilinear", "bicubic", "lanczos"]
    pad_value: int
    dtype: _commands.DType | Any
    normalize: _commands.Normalization | None
    layout: _commands.Layout
    color: Literal["rgb", "gray"]
    exif: Literal["apply", "ignore"] | None
    preset: Literal["imagenet", "imagenet-train"] | None
    format: _commands.Format
    split: str
    labels: _commands.Path
    path_column: str | None
    label_column: str | None
    label_regex: str | None
    image_key: str | None
    label_key: str | None
    proto: _commands.Path | None
    message: str | None
    mask: _commands.Path | None
    size_column: bool
    split_file: _commands.Path | None
    val_fraction: float | None
    classes: _commands.Path | None
    shard_size: int | str
    shards: int | None
    overwrite: bool
    keys: Literal["full", "short"]
    seed: int
    shuffle: bool
    on_error: Literal["skip", "fail"]
    max_bad: float | str
    max_pixels: int
    index: _commands.IndexKind | Sequence[_commands.IndexKind] | None
