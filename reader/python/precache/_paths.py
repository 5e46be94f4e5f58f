# SPDX-License-Identifier: Apache-2.0
"""The way back from the keys of a dataset's samples to the files that it was built from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import _reader
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._dataset import Dataset

_SHORT_KEY_BYTES = 96  # of a build with `short_keys`


def find_files(dataset: Dataset, source: str, check_times: bool) -> list[str]:
    """The file of each sample; `Dataset.paths` documents it."""
    if not os.path.isdir(source):
        raise InvalidArgument(f"source must be the folder that was built, got {source!r}, which is not a folder")
    keys = list(dataset.keys)
    files = _files_by_key(os.fsencode(source), set(keys), dataset)
    missing = [key for key in keys if key not in files]
    if missing:
        raise InvalidArgument(
            f"'{source}' has no file for {len(missing)} of {len(keys)} samples, the first with the key {missing[0]!r}",
            hint="Give the folder that was built. Files that were removed or renamed since cannot be found.",
        )
    paths = [os.path.join(source, os.fsdecode(files[key])) for key in keys]
    built = _manifest_path(dataset)
    if check_times and built is not None:
        newest = os.stat(built).st_mtime_ns
        changed = [path for path in paths if os.stat(path).st_mtime_ns > newest]
        if changed:
            raise InvalidArgument(
                f"{len(changed)} of {len(paths)} files changed after the dataset was built, first '{changed[0]}'",
                hint="Build it again. If only times differ, as after a copy, set check_times=False.",
            )
    return paths


def key_of_path(path: bytes) -> str:
    """The key of an image with this path below the source."""
    folder, slash, name = path.rpartition(b"/")
    name = name.rpartition(b".")[0] if b"." in name else name
    key = _escaped(folder + slash) + (_escaped(name).replace(".", "_") or "_")
    if "." in key:  # webdataset drops such names with a line end, and those below a folder `__x__`
        key = key.replace("\n", "%0A")
    if re.match("__[^/]*__/", key):
        key = "%5F" + key[1:]
    return key


def _escaped(text: bytes) -> str:
    """Text whose bytes that are not UTF-8 are percent-escaped."""
    return re.sub(
        "[\udc80-\udcff]", lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", text.decode(errors="surrogateescape")
    )


def _files_by_key(source: bytes, keys: set[str], dataset: Dataset) -> dict[str, bytes]:
    """The paths below `source` by the keys that a build gives to them."""
    by_name: dict[str, list[bytes]] = {}
    for path in sorted(_images_below(source, b"", frozenset())):
        name = key_of_path(path)
        if len(name.encode()) > _SHORT_KEY_BYTES and name not in keys:
            name = _reader.shortened(name, _SHORT_KEY_BYTES)
        by_name.setdefault(name, []).append(path)
    files: dict[str, bytes] = {}
    for name, paths in by_name.items():
        if len(paths) == 1:
            files[name] = paths[0]
            continue
        # As the build does it: the first keeps the name, the others get the next free numbers.
        names, number = [name], 2
        while len(names) < len(paths):
            if f"{name}~{number}" not in by_name:
                names.append(f"{name}~{number}")
            number += 1
        if not keys.intersection(names):
            continue
        if not set(names) <= _keys_of_all_splits(dataset):  # a label file named some of them, or one is damaged
            both = " and ".join(f"'{os.fsdecode(path)}'" for path in paths[:2])
            raise InvalidArgument(
                f"{both} could both be the sample with the key {name!r}", hint="Move the file that was not built."
            )
        files.update(zip(names, paths, strict=True))
    return files


def _images_below(source: bytes, folder: bytes, above: frozenset[tuple[int, int]]) -> Iterator[bytes]:
    status = os.stat(os.path.join(source, folder))
    here = (status.st_dev, status.st_ino)
    if here in above:  # a link to a folder above itself
        return
    with os.scandir(os.path.join(source, folder)) as entries:
        for entry in entries:
            path = folder + b"/" + entry.name if folder else entry.name
            if entry.name.startswith(b"."):
                continue
            if entry.is_dir():
                yield from _images_below(source, path, above | {here})
            elif _reader.has_image_ending(entry.name) and entry.is_file():
                yield path


def _manifest_path(dataset: Dataset) -> str | None:
    """The manifest of a dataset that was opened by its folder."""
    paths = dataset._arguments["path"]
    path = paths[0] if os.path.basename(paths[0]) == "dataset.json" else os.path.join(paths[0], "dataset.json")
    return path if len(paths) == 1 and os.path.isfile(path) else None


def _keys_of_all_splits(dataset: Dataset) -> set[str]:
    path = _manifest_path(dataset)
    if path is None:
        return set(dataset.keys)
    with open(path, encoding="utf-8") as file:
        splits = json.load(file)["splits"]
    return {key for split in splits for key in type(dataset)(os.path.dirname(path), split).keys}
