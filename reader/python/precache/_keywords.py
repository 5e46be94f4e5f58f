# SPDX-License-Identifier: Apache-2.0
"""What functions take by keyword and pass on, for those who check types: nothing else imports this."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ._arrays import Spec
from ._loader import Crop, Numbers


class OpenOptions(TypedDict, total=False):
    """Of `precache.open`."""

    split: str | None
    writable: bool
    spec: Spec | None
    verify_on_read: bool
    image_key: str | None
    label_key: str | None
    labels: Literal["none"] | None
    max_open_shards: int
    scan_threads: int


class LoaderOptions(TypedDict, total=False):
    """Of `precache.Loader`, what other loaders take as well."""

    shuffle: Literal["block", "full"] | None
    seed: int
    last_batch: Literal["drop", "pad", "keep"] | None
    drop_last: bool | None
    crop: int | tuple[int, int] | Crop | None
    flip: bool
    normalize: Literal["imagenet"] | tuple[Numbers, Numbers] | None
    dtype: Any
    threads: int
    prefetch: int
    block_rows: int
    window_blocks: int


class PlacedLoaderOptions(LoaderOptions, total=False):
    """The same where the rank is given and arrays have any layout."""

    rank: int
    world_size: int
    layout: Literal["chw", "hwc"] | None
    writable: bool
