# SPDX-License-Identifier: Apache-2.0
"""Datasets, opened: samples as numpy arrays that lie in the page cache."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

import numpy as np

from . import _options, _reader
from ._arrays import Spec, as_tensors
from ._errors import InvalidArgument
from ._process import expected_command

Array = np.ndarray[Any, Any]
PathLike = str | os.PathLike[str]


class Keys(Sequence[str]):
    """The names of a dataset's samples, read from its shards when asked for.

    >>> len(dataset.keys), dataset.keys[0], dataset.keys[1:3]
    (23, 'bee/2', ['bee/4', 'ant/1'])
    """

    def __init__(self, dataset: Dataset):
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        native = self._dataset._native
        if isinstance(index, slice):
            return [native.key(i) for i in range(*index.indices(len(self)))]
        return native.key(self._dataset._position(index))


class Dataset(Sequence[tuple[Array, int]]):
    """The samples of some shards, in the order in which they are stored. Made by `precache.open`.

    `dataset[i]` is (array, label). The array is a read-only view of the shard's pages: nothing is copied, and it stays
    good as long as it is referenced, even after the dataset is gone. The label is -1 where there is none.

    `dataset[i:j]` is (arrays, labels), the arrays again a view where the samples lie at equal distances in one shard;
    a slice across shards is copied. Samples that are encoded images (`dataset.has_spec` is False) are arrays of bytes.

    A dataset may be used by any number of threads, after a fork, and can be pickled: it is opened again by its path.

    >>> image, label = dataset[0]
    >>> image.shape, image.dtype, image.flags.writeable, dataset.classes[label]
    ((3, 32, 32), dtype('uint8'), False, 'bee')
    >>> images, labels = dataset[4:8]
    >>> images.shape, labels.tolist()
    ((4, 3, 32, 32), [1, 3, 3, 1])
    """

    def __init__(
        self,
        path: PathLike | Sequence[PathLike],
        split: str | None = None,
        *,
        writable: bool = False,
        spec: Spec | None = None,
        verify_on_read: bool = False,
        image_key: str | None = None,
        label_key: str | None = None,
        labels: Literal["none"] | None = None,
        max_open_shards: int = 0,
        scan_threads: int = 0,
    ):
        paths = _options.paths(path)
        if not isinstance(split, str | None):
            raise TypeError(f"split is {split!r}, not a name")
        spec = None if spec is None else _options.spec(spec)
        max_open_shards = _options.count("max_open_shards", max_open_shards)
        scan_threads = _options.count("scan_threads", scan_threads, 2**32 - 1)
        verify_on_read = _options.truth("verify_on_read", verify_on_read)
        writable = _options.truth("writable", writable)
        if not isinstance(image_key, str | None) or not isinstance(label_key, str | None):
            raise TypeError("image_key and label_key are names")
        if labels not in (None, "none"):
            raise InvalidArgument(f"labels is {labels!r}", hint='Leave it out, or give "none" to open shards without labels.')
        self._arguments: dict[str, Any] = {
            "path": [os.path.abspath(p) for p in paths],
            "split": split,
            "writable": writable,
            "spec": spec,
            "verify_on_read": verify_on_read,
            "image_key": image_key,
            "label_key": label_key,
            "labels": labels,
            "max_open_shards": max_open_shards,
            "scan_threads": scan_threads,
        }
        self._writable = writable
        self._native = _reader.Dataset.open(
            paths,
            split or "",
            spec,
            max_open_shards,
            verify_on_read,
            scan_threads,
            image_key or "",
            label_key or "",
            labels == "none",
            expected_command(),
        )
        is_folder = len(paths) == 1 and (os.path.isdir(paths[0]) or os.path.basename(paths[0]) == "dataset.json")
        if split and not is_folder:  # it would be ignored
            raise InvalidArgument(f"a split, '{split}', of shards that were named", hint="Name their folder.")
        self._spec = Spec(*self._native.spec) if self._native.has_spec else None

    @property
    def has_spec(self) -> bool:
        """Whether all samples are tensors of one shape and type."""
        return self._spec is not None

    @property
    def spec(self) -> Spec:
        """dtype, layout and shape of every sample. Raises Unsupported, with the reason, if there is none."""
        return self._spec or Spec(*self._native.spec)

    @property
    def classes(self) -> list[str]:
        """Class names by label; empty where the shards do not say."""
        return self._native.classes

    @property
    def keys(self) -> Keys:
        """The samples' names.

        >>> dataset.keys[2]
        'ant/1'
        """
        return Keys(self)

    @property
    def labels(self) -> Array:
        """All labels as int64. Reads every shard's labels, each time that it is asked for."""
        return self._native.labels(np.arange(len(self)))

    @property
    def shard_count(self) -> int:
        """How many files the samples lie in."""
        return self._native.shard_count

    def gather(self, indices: Sequence[int] | Array) -> tuple[Array, Array]:
        """Copies of samples in any order: (arrays, labels).

        >>> images, labels = dataset.gather([5, 0, -1])
        >>> images.shape, images.flags.writeable, labels.tolist()
        ((3, 3, 32, 32), True, [3, 1, 3])
        """
        rows, labels = self._gather_rows(indices)
        return as_tensors(rows, self.spec), labels

    def _gather_rows(self, indices: Sequence[int] | Array) -> tuple[Array, Array]:
        asked = np.asarray(indices)
        if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iuO"):  # O: too large for numpy
            raise TypeError(f"indices are {indices!r}, not a sequence of whole numbers")
        outside = (asked < -len(self)) | (asked >= len(self))
        if outside.any():
            raise IndexError(f"there is no sample {asked[outside][0]}, the dataset has {len(self)}")
        positions = asked.astype(np.int64)
        positions[positions < 0] += len(self)
        rows = np.empty((len(positions), self.spec.nbytes), dtype=np.uint8)
        self._native.gather(positions, rows)
        return rows, self._native.labels(positions)

    def __len__(self) -> int:
        return len(self._native)

    @overload  # type: ignore[override]  # a slice is two arrays, not a sequence of samples
    def __getitem__(self, index: int) -> tuple[Array, int]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Array, Array]: ...
    def __getitem__(self, index: int | slice) -> tuple[Array, int] | tuple[Array, Array]:
        if isinstance(index, slice):
            return self._slice(range(*index.indices(len(self))))
        # numpy could copy the view as well, but would not see that the shard was cut meanwhile and zeros were read.
        take = self._native.copied_sample if self._writable else self._native.sample
        row, label = take(self._position(index))
        return (as_tensors(row, self._spec)[0] if self._spec else row[0]), label

    def __iter__(self) -> Iterator[tuple[Array, int]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        what = self._spec.text if self._spec else "encoded"
        classes = f"{len(self.classes)} classes" if self.classes else "no class names"
        return f"<precache.Dataset: {len(self)} samples, {what}, {classes}, {self.shard_count} shards>"

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Dataset, **self._arguments), ()

    def _position(self, index: int) -> int:
        position = operator.index(index)
        position += len(self) if position < 0 else 0
        if not 0 <= position < len(self):  # what ends a `for` over a sequence
            raise IndexError(f"there is no sample {index}, the dataset has {len(self)}")
        return position

    def _slice(self, positions: range) -> tuple[Array, Array]:
        rising = positions if positions.step > 0 else positions[::-1]
        span = rising[-1] + 1 - rising[0] if rising else 0
        if self._writable or not rising or span > self._native.contiguous_rows(rising[0]):
            return self.gather(np.asarray(positions, dtype=np.int64))
        try:
            rows = self._native.rows(rising[0], span)
        except NotImplementedError:  # their distances differ
            return self.gather(np.asarray(positions))
        arrays = as_tensors(rows, self.spec)[:: abs(positions.step)]
        labels = self._native.labels(np.asarray(positions))
        return (arrays if positions.step > 0 else arrays[::-1]), labels


def open(  # noqa: A001
    path: PathLike | Sequence[PathLike],
    split: str | None = None,
    *,
    writable: bool = False,
    spec: Spec | None = None,
    verify_on_read: bool = False,
    image_key: str | None = None,
    label_key: str | None = None,
    labels: Literal["none"] | None = None,
    max_open_shards: int = 0,
    scan_threads: int = 0,
) -> Dataset:
    """Opens a dataset folder, a shard, a pattern of shards ('train-{000000..000012}.tar') or a list of shards.

    Args:
        path: what `precache build` or `convert` made, or shards of tensors (or encoded images) from elsewhere: tar,
            TFRecord, HDF5.
        split: one of a folder's splits; by default its only one, else "train".
        writable: have samples and slices copied, so that they may be written to. Views are read-only.
        spec: what the tensors are, for shards that do not say (TFRecords of raw bytes without a manifest). Of others
            it has to be what they say.
        verify_on_read: check CRCs and checksums of each record as it is read.
        image_key: what of shards without a manifest is the image, where that cannot be guessed: a feature of a TFRecord,
            a dataset of an HDF5 file, the extension of a file in a tar.
        label_key: the same of labels.
        labels: "none" opens shards without a manifest without labels.
        max_open_shards: mappings that are kept; 0: a quarter of the descriptors that the process may have.
        scan_threads: for shards without a manifest; 0: as many as the process may use.

    Raises:
        OSError: a path that is not there or cannot be read.
        CorruptDataError: damage, with file and offset.
        ValueError: a split or pattern that names nothing, or a spec that is not that of the shards.
        NotImplementedError: files that hold no samples that can be read.

    >>> dataset = precache.open(folder)
    >>> dataset
    <precache.Dataset: 23 samples, uint8 3x32x32 chw, 4 classes, 1 shards>
    >>> image, _ = precache.open(f"{folder}/train-*.tar", writable=True)[0]
    >>> image[:] = 0
    """
    return Dataset(
        path,
        split,
        writable=writable,
        spec=spec,
        verify_on_read=verify_on_read,
        image_key=image_key,
        label_key=label_key,
        labels=labels,
        max_open_shards=max_open_shards,
        scan_threads=scan_threads,
    )
