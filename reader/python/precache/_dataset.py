# SPDX-License-Identifier: Apache-2.0
"""Datasets: samples as numpy arrays in the page cache."""

from __future__ import annotations

import functools
import inspect
import operator
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from . import _options, _paths, _reader
from ._arrays import Column, Spec, as_tensors
from ._errors import InvalidArgument
from ._process import expected_command

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11 on

    from ._keywords import OpenOptions

Array = np.ndarray[Any, Any]
PathLike = str | os.PathLike[str]


class Keys(Sequence[str]):
    """The keys of a dataset's samples, read from its shards on demand.

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
        dataset = self._dataset
        if isinstance(index, slice):
            return [dataset._native.key(dataset._position(i)) for i in range(*index.indices(len(self)))]
        return dataset._native.key(dataset._position(index))


class ReadyBatch:
    """A batch that a loader has made, in place of the indices from which torch's DataLoader would make one."""

    def __init__(self, batch: Any):
        self.batch = batch


class Dataset(Sequence[tuple[Array, int]]):
    """The samples of some shards, in stored order. Use `precache.open` to open one.

    `dataset[i]` is (array, label). The array is a read-only view of the shard's pages: nothing is copied, and it stays
    valid as long as it is referenced, even after the dataset is gone. The label is -1 if a sample has none.

    `dataset[i:j]` is (arrays, labels). The arrays are a view, too, if the samples are evenly spaced in one shard; a slice
    across shards is copied. Encoded images (`dataset.has_spec` is False) are arrays of bytes.

    Any number of threads can use a dataset, and so can a forked process. It is pickled by its path and options.

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
        indices: Sequence[int] | Array | None = None,
        only_classes: Sequence[str | int] | None = None,
        max_open_shards: int = 0,
        scan_threads: int = 0,
    ):
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        paths = _options.paths(path)
        self._arguments["path"] = [os.path.abspath(each) for each in paths]
        if not isinstance(split, str | None):
            raise TypeError(f"split must be a string, got {split!r}")
        spec = None if spec is None else _options.spec(spec)
        max_open_shards = _options.count("max_open_shards", max_open_shards)
        scan_threads = _options.count("scan_threads", scan_threads, 2**32 - 1)
        verify_on_read = _options.truth("verify_on_read", verify_on_read)
        writable = _options.truth("writable", writable)
        if not isinstance(image_key, str | None) or not isinstance(label_key, str | None):
            raise TypeError("image_key and label_key must be strings")
        if labels not in (None, "none"):
            raise InvalidArgument(
                f"labels must be 'none' or None, got {labels!r}", hint="'none' opens shards without labels."
            )
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
            raise InvalidArgument(
                f"split is '{split}', but the path names shards", hint="Give the folder of the shards."
            )
        self._spec = Spec(*self._native.spec) if self._native.has_spec else None
        self._indices: Array | None = None  # of the samples in the shards; None: all
        if indices is not None:
            self._indices = self._arguments["indices"] = self._positions(indices, "indices")
        if only_classes is not None:
            if isinstance(only_classes, str):
                raise InvalidArgument(f"only_classes must be a list of classes, got {only_classes!r}")
            wanted = np.isin(self.labels, [self._label(each) for each in only_classes])
            self._indices = np.flatnonzero(wanted) if self._indices is None else self._indices[wanted]

    @property
    def has_spec(self) -> bool:
        """Whether all samples are tensors of one shape and type."""
        return self._spec is not None

    @property
    def spec(self) -> Spec:
        """dtype, layout and shape of every sample. Raises Unsupported, with the reason, if samples differ or are encoded."""
        return self._spec or Spec(*self._native.spec)

    @property
    def classes(self) -> list[str]:
        """Class names by label; empty if the shards have no class names."""
        return self._native.classes

    @property
    def num_classes(self) -> int:
        """Number of classes: of the class names, or else the largest label plus one."""
        return len(self.classes) or int(self.labels.max(initial=-1)) + 1

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class name."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def targets(self) -> list[int]:
        """All labels as a list, as torchvision's ImageFolder has them."""
        labels: list[int] = self.labels.tolist()
        return labels

    @property
    def samples(self) -> list[tuple[str, int]]:
        """(key, label) of all samples. Keys take the place of the paths of torchvision's ImageFolder."""
        return list(zip(self.keys, self.targets, strict=True))

    @property
    def keys(self) -> Keys:
        """The keys of the samples: unique names, made from the paths of the images.

        >>> dataset.keys[2]
        'ant/1'
        """
        return Keys(self)

    def paths(self, source: PathLike, *, check_times: bool = True) -> list[str]:
        """The image file of each sample, for a dataset that was built from the folder `source`.

        Keys are not paths: they lack the extension, and some characters are replaced. This lists the folder again, gives
        each file its key as the build did, and returns the paths in the order of the samples.

        Args:
            source: The folder that the dataset was built from. It may have moved.
            check_times: Refuse files that were modified after the dataset was built.

        Raises:
            InvalidArgument: A sample has no file, two files could be the same sample, or a file has changed.
        """
        folder = os.path.abspath(_options.paths(source)[0])
        return _paths.find_files(self, folder, _options.truth("check_times", check_times))

    @property
    def labels(self) -> Array:
        """All labels as int64. Each access reads them from the shards."""
        return self._native.labels(np.arange(len(self)) if self._indices is None else self._indices)

    @property
    def columns(self) -> dict[str, Column]:
        """The named columns of each sample next to image and label, such as float targets and masks; often none.

        >>> dataset.columns
        {}
        """
        return {column[0]: Column(*column) for column in self._native.columns}

    def column(self, name: str, indices: Sequence[int] | Array | None = None) -> Array:
        """The values of a named column, for all samples or those of `indices`: an array of (samples, *shape).

        Args:
            name: One of `columns`.
            indices: As in `gather`. A mask of every sample may need much memory.
        """
        known = self.columns
        if name not in known:
            hint = f"Columns: {', '.join(known)}." if known else "It has only images, labels and keys."
            raise InvalidArgument(f"the dataset has no column {name!r}", hint=hint)
        return self._native.column(name, self._positions(range(len(self)) if indices is None else indices, "indices"))

    @property
    def shard_count(self) -> int:
        """Number of shards."""
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
        positions = self._positions(indices, "indices")
        rows = np.empty((len(positions), self.spec.nbytes), dtype=np.uint8)
        self._native.gather(positions, rows)
        return rows, self._native.labels(positions)

    def _positions(self, indices: Any, name: str) -> Array:
        """Indices of this dataset as positions in its shards."""
        asked = np.asarray(indices)
        if asked.dtype == np.bool_ and asked.shape == (len(self),):
            asked = np.flatnonzero(asked)
        if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iuO"):  # O: too large for numpy
            raise TypeError(f"{name} must be a sequence of whole numbers, got {indices!r}")
        outside = (asked < -len(self)) | (asked >= len(self))
        if outside.any():
            raise IndexError(f"there is no sample {asked[outside][0]}, the dataset has {len(self)}")
        positions = asked.astype(np.int64)
        positions[positions < 0] += len(self)
        chosen: Array = positions if self._indices is None else self._indices[positions]
        return chosen

    def _label(self, name: str | int) -> int:
        if not isinstance(name, str):
            label = _options.count("a class of only_classes", name)
            everything = np.arange(0 if self.classes else len(self._native))
            known = len(self.classes) or int(self._native.labels(everything).max(initial=-1)) + 1
            if label >= known:
                raise InvalidArgument(f"only_classes has {label}, but the largest label is {known - 1}")
            return label
        if name not in self.classes:
            raise InvalidArgument(
                f"only_classes has {name!r}, which is not a class", hint=f"Classes: {', '.join(self.classes)}."
            )
        return self.classes.index(name)

    def __getitems__(self, indices: Sequence[Any]) -> Sequence[Any]:
        """The samples of a batch, as torch's DataLoader reads them."""
        is_ready = len(indices) == 1 and isinstance(indices[0], ReadyBatch)
        return indices if is_ready else [self[index] for index in indices]

    def __len__(self) -> int:
        return len(self._native) if self._indices is None else len(self._indices)

    @overload  # type: ignore[override]  # a slice is two arrays, not a sequence of samples
    def __getitem__(self, index: int) -> tuple[Array, int]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Array, Array]: ...
    def __getitem__(self, index: int | slice) -> tuple[Array, int] | tuple[Array, Array]:
        if isinstance(index, slice):
            return self._slice(range(*index.indices(len(self))))
        # numpy could copy the view, too, but would not notice if the shard was truncated and the view read zeros.
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
        if not 0 <= position < len(self):  # also ends a `for` over the sequence
            raise IndexError(f"there is no sample {index}, the dataset has {len(self)}")
        return position if self._indices is None else int(self._indices[position])

    def _slice(self, positions: range) -> tuple[Array, Array]:
        rising = positions if positions.step > 0 else positions[::-1]
        span = rising[-1] + 1 - rising[0] if rising else 0
        if self._writable or self._indices is not None or not rising or span > self._native.contiguous_rows(rising[0]):
            return self.gather(np.asarray(positions, dtype=np.int64))
        try:
            rows = self._native.rows(rising[0], span)
        except NotImplementedError:  # the samples are not evenly spaced
            return self.gather(np.asarray(positions))
        arrays = as_tensors(rows, self.spec)[:: abs(positions.step)]
        labels = self._native.labels(np.asarray(positions))
        return (arrays if positions.step > 0 else arrays[::-1]), labels


def open(path: PathLike | Sequence[PathLike], split: str | None = None, **options: Unpack[OpenOptions]) -> Dataset:  # noqa: A001
    """Opens a dataset folder, a shard, a pattern of shards ('train-{000000..000012}.tar') or a list of shards.

    Args:
        path: Output of `precache build` or `convert`, or third-party shards of tensors or encoded images: tar, TFRecord,
            HDF5.
        split: One of the folder's splits; by default the only one, or else "train".
        writable: Copy samples and slices, so that they can be written to. Views are read-only.
        spec: The spec of tensors in shards that do not record it (TFRecords of raw bytes without a manifest). For other
            shards it must match what they record.
        verify_on_read: Check CRCs and checksums of each record as it is read.
        image_key: For shards without a manifest, if it cannot be guessed: the TFRecord feature, HDF5 dataset or tar
            extension of the images.
        label_key: The same for labels.
        labels: "none" ignores the labels of shards without a manifest.
        indices: Open only these samples, in this order; or a boolean mask. Slices of such a dataset are copies.
        only_classes: Open only the samples of these classes, given as names or labels. Labels do not change.
        max_open_shards: Mappings to keep open; 0 is a quarter of the descriptors that the process may have.
        scan_threads: Threads that scan shards without a manifest; 0 is one for each CPU of the process.

    Raises:
        OSError: A path does not exist or cannot be read.
        CorruptDataError: A file is damaged.
        ValueError: No such split, no file matches the pattern, or `spec` is not that of the shards.
        NotImplementedError: The files contain no samples that can be read.

    >>> dataset = precache.open(folder)
    >>> dataset
    <precache.Dataset: 23 samples, uint8 3x32x32 chw, 4 classes, 1 shards>
    >>> image, _ = precache.open(f"{folder}/train-*.tar", writable=True)[0]
    >>> image[:] = 0
    """
    return Dataset(path, split, **options)


def _refuse_transforms(dataset: Any) -> None:
    given = [name for name in ("transform", "target_transform", "pil", "columns") if getattr(dataset, name)]
    if given:
        raise InvalidArgument(
            f"a loader would ignore {', '.join(given)} of the precache.torch.Dataset",
            hint="Give the loader the path of the shards, and transform=, batch_transform= or columns=.",
        )


def opened(dataset: Dataset | PathLike | Sequence[PathLike], split: str | None = None) -> Dataset:
    """The dataset itself, the one of a `precache.torch.Dataset`, or the one at a path."""
    inner = getattr(dataset, "dataset", None)
    if isinstance(inner, Dataset) and type(dataset).__module__ == "precache.torch":  # a subclass may change samples
        _refuse_transforms(dataset)
        dataset = inner
    elif inner is not None and hasattr(dataset, "indices"):
        raise InvalidArgument(
            f"a loader does not take a {type(dataset).__name__} of torch",
            hint="Use precache.open(..., indices=subset.indices).",
        )
    if not isinstance(dataset, Dataset):
        return Dataset(dataset, split)
    if split is not None:
        raise InvalidArgument("split cannot change an open dataset", hint="Give it to precache.open.")
    return dataset


open.__signature__ = inspect.signature(Dataset)  # type: ignore[attr-defined]  # shows the options in help()
