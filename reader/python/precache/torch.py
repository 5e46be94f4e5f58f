# SPDX-License-Identifier: Apache-2.0
"""Batches as torch tensors, and datasets for torch's own DataLoader.

>>> loader = precache.torch.Loader(folder, batch_size=4, shuffle="full", dtype="float32", normalize="imagenet")
>>> for images, labels in loader:
...     pass  # your step
>>> images.shape, images.dtype
(torch.Size([4, 3, 32, 32]), torch.float32)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.distributed
import torch.utils.dlpack
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

from . import _dataset, _loader, _options, _reader
from ._arrays import Spec, as_tensors
from ._dataset import Array, PathLike
from ._device import DeviceTensor
from ._errors import InvalidArgument, Unsupported, name_arguments

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11 on

    from ._keywords import LoaderOptions, OpenOptions

__all__ = ["Dataset", "Loader"]

_MOST_DEVICE_BATCHES = 1024
_PATHS = ("auto", "staged", "strided", "gather")


class Loader(_loader.Loader):
    """A `precache.Loader` of torch tensors: images of (batch, channels, height, width), labels of int64.

    In a process group of `torch.distributed`, rank and world size are the group's unless given.

    Args:
        dataset: a `precache.Dataset`, or what `precache.open` takes.
        batch_size: of this rank.
        channels_last: the memory format: True, False, or None for the one that is stored without a conversion.
        device: where tensors are. On a CUDA device they are ready when the stream that is current gets to them: the loader
            copies ahead, and crops, flips and converts there (docs/gpu.md). Where it cannot, as it was built without CUDA,
            torch moves them; `stats()["device"]["reason"]` says which and why.
        device_batches: batches on a CUDA device: those that are held, and those on their way. One has to be free at each
            step.
        device_path: "auto", or "staged", "strided" or "gather" for that or an error.
        pin_shards_up_to: shards of so many bytes or less, together, are pinned and copied to a CUDA device from where they
            lie. That takes as much memory, which is not swapped out.
        pin_memory: put batches into page-locked memory, from which a GPU takes them while the program continues. By default
            if torch has a CUDA device and either moves them there or, without `device`, leaves that to you.
        views: let sequential batches without a conversion be the shard's own pages, which is faster. Torch has no
            read-only tensors: writing to such a batch in place ends the process.
        **options: all others of `precache.Loader`, but for `layout`. `writable` makes no difference without `views`: all
            batches may be written to.
    """

    def __init__(
        self,
        dataset: _dataset.Dataset | PathLike | Sequence[PathLike],
        batch_size: int = 256,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        channels_last: bool | None = None,
        device: torch.device | str | None = None,
        device_batches: int = 3,
        device_path: Literal["auto", "staged", "strided", "gather"] = "auto",
        pin_shards_up_to: int = 0,
        pin_memory: bool | None = None,
        writable: bool = False,
        views: bool = False,
        **options: Unpack[LoaderOptions],
    ):
        if "layout" in options:
            raise TypeError("layout is not an option of torch's loader: use channels_last, which is the memory format")
        if _options.truth("views", views) and _options.truth("writable", writable):
            raise InvalidArgument("both writable and views are set", hint="Views of a shard must not be written to.")
        if channels_last is not None:
            channels_last = _options.truth("channels_last", channels_last)
        self.device = None if device is None else torch.device(device)
        to_cuda = self.device is not None and self.device.type == "cuda"
        self._must_pin = pin_memory is not None and _options.truth("pin_memory", pin_memory)
        # By default, the first batch tells whether there is such memory: to try it here would make a context on a GPU
        # before the program has chosen its own.
        by_default = to_cuda or (self.device is None and torch.cuda.is_available())
        self._pin_memory = by_default if pin_memory is None else self._must_pin
        if self._must_pin and not to_cuda:
            _check_pinning()
        self._device_batches = _options.count("device_batches", device_batches, _MOST_DEVICE_BATCHES, least=1)
        self._path = _options.one_of("device_path", device_path, _PATHS)
        self._pin_shards_up_to = _options.count("pin_shards_up_to", pin_shards_up_to)
        self._moved_because: str | None = None
        if self._path != "auto" and not to_cuda:
            raise InvalidArgument(f"device_path is {device_path!r}, and device is {device!r}", hint="Use a CUDA device.")
        group_rank, group_size = _process_group()
        super().__init__(
            dataset,
            batch_size,
            rank=group_rank if rank is None else rank,
            world_size=group_size if world_size is None else world_size,
            layout=None if channels_last is None else "hwc" if channels_last else "chw",
            writable=not views,
            **options,
        )

    def _make_native(self, options: _reader.LoaderOptions) -> _loader.AnyLoader:
        if self.device is None or self.device.type != "cuda":
            return super()._make_native(options)
        if not torch.cuda.is_available():
            raise Unsupported("torch finds no CUDA device, so batches cannot be put on one", hint="Leave out device.")
        number = torch.cuda.current_device() if self.device.index is None else self.device.index
        self.device = torch.device("cuda", number)
        try:
            return _reader.DeviceLoader(
                self.dataset._native,
                options,
                device=number,
                device_batches=self._device_batches,
                path=self._path,
                pin_shards_up_to=self._pin_shards_up_to,
            )
        except Unsupported as error:
            if self._path != "auto":
                raise
            self._moved_because = error.message
        return super()._make_native(options)

    if TYPE_CHECKING:  # what _arrays makes of it

        def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]: ...  # type: ignore[override]

    def _arrays(self, batch: _reader.Batch | _reader.DeviceBatch) -> tuple[torch.Tensor, torch.Tensor]:
        if isinstance(batch, _reader.DeviceBatch):
            images = torch.utils.dlpack.from_dlpack(DeviceTensor(batch, labels=False))
            labels = torch.utils.dlpack.from_dlpack(DeviceTensor(batch, labels=True))
            return _channels_first(images, self._spec), labels
        images = _tensors(self._rows(batch, may_write=True), self._spec)
        labels = torch.from_numpy(batch.labels())
        if self._pin_memory:
            images, labels = self._pinned(images, labels)
        if self.device is not None:
            images = images.to(self.device, non_blocking=self._pin_memory)
            labels = labels.to(self.device, non_blocking=self._pin_memory)
        return images, labels

    def _pinned(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        try:
            return images.pin_memory(), labels.pin_memory()
        except RuntimeError:  # too much is locked, say, or the process was forked
            if self._must_pin:
                raise
            self._pin_memory = False
            return images, labels

    def stats(self) -> dict[str, Any]:
        """Who waited for whom, as of a `precache.Loader`; in "device", for a CUDA device, how batches get there."""
        stats = super().stats()
        if self._moved_because is not None:
            stats["device"] = {"reason": f"Moved by torch: {self._moved_because}."}
        elif "device" in stats:
            stats["device"]["reason"] = name_arguments(stats["device"]["reason"])
        return stats


class Dataset(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """A map-style dataset for `torch.utils.data.DataLoader`: (image, label), the image of (channels, height, width).

    Each image is a copy. Works with any number of workers, forked or spawned. `precache.torch.Loader` is
    several times as fast where its crops, flips and normalisation are enough. A subclass may have its own `__getitem__`:
    DataLoader then asks for samples one by one.

    Args:
        dataset: a `precache.Dataset`, or what `precache.open` takes.
        transform: applied to each image.
        **options: of `precache.open`.

    >>> dataset = precache.torch.Dataset(folder, transform=lambda image: image.float() / 255)
    >>> image, label = dataset[0]
    >>> image.shape, image.dtype, dataset.classes[label]
    (torch.Size([3, 32, 32]), torch.float32, 'bee')
    >>> images, labels = next(iter(torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True)))
    >>> images.shape, labels.dtype
    (torch.Size([4, 3, 32, 32]), torch.int64)
    """

    def __init__(
        self,
        dataset: _dataset.Dataset | PathLike | Sequence[PathLike],
        transform: Callable[[torch.Tensor], Any] | None = None,
        **options: Unpack[OpenOptions],
    ):
        if isinstance(dataset, _dataset.Dataset) and options:
            raise InvalidArgument(f"{', '.join(options)} of a dataset that is open", hint="Give it to precache.open.")
        self.dataset = dataset if isinstance(dataset, _dataset.Dataset) else _dataset.open(dataset, **options)
        self.transform = transform
        self.classes = self.dataset.classes

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        try:
            number = operator.index(index)
        except TypeError:
            raise TypeError(f"index is {index!r}, not a whole number") from None
        image, label = self._samples([number])[0]
        return image, label

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Samples for a batch at once, as DataLoader asks for them."""
        # DataLoader and Subset prefer this to __getitem__: what a subclass does there would be left out.
        if type(self).__getitem__ is not Dataset.__getitem__:
            return [self[index] for index in indices]
        return self._samples(indices)

    def _samples(self, indices: Sequence[int]) -> list[Any]:
        rows, labels = self.dataset._gather_rows(indices)
        images = _tensors(rows, self.dataset.spec)
        if self.transform is not None:
            return list(zip(map(self.transform, images), labels.tolist(), strict=True))
        samples = _Gathered(map(_Sample, zip(images, labels.tolist(), strict=True)))
        samples.gathered = tuple(samples)
        samples.batch = [images, torch.from_numpy(labels)]
        return samples


class _Sample(tuple[torch.Tensor, int]):
    """(image, label), of a type by which torch finds `_collate`."""


class _Gathered(list[_Sample]):
    """Samples of a batch that lies in memory as a whole; a list, as those are that torch gives to a collate_fn."""

    gathered: tuple[_Sample, ...]
    batch: list[torch.Tensor]

    def is_whole(self) -> bool:
        """Whether it still has all that was gathered, in that order."""
        return len(self) == len(self.gathered) and all(map(operator.is_, self, self.gathered))


def _collate(samples: Sequence[_Sample], **_: Any) -> Any:
    """What torch's default_collate does with our samples: a batch that is one already need not be copied together."""
    if isinstance(samples, _Gathered) and samples.is_whole():
        return samples.batch
    return default_collate([tuple(sample) for sample in samples])


default_collate_fn_map[_Sample] = _collate


def _check_pinning() -> None:
    """Raises where torch has no page-locked memory: now, not at the first batch."""
    try:
        torch.empty(1).pin_memory()
    except (RuntimeError, AssertionError) as error:  # AssertionError: torch was built without CUDA
        reason = str(error).strip().splitlines()[0]
        raise Unsupported(f"torch cannot pin memory: {reason}", hint="Leave out pin_memory.") from None


def _process_group() -> tuple[int, int]:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _tensors(rows: Array, spec: Spec) -> torch.Tensor:
    """Bytes, a row for each image, seen as images of (channels, height, width)."""
    # from_numpy has no bfloat16: the same bits pass as integers, of the kind that every version of torch has.
    bits = spec._replace(dtype="int16") if spec.dtype == "bfloat16" else spec
    tensors = torch.from_numpy(as_tensors(rows, bits))
    if spec.dtype == "bfloat16":
        tensors = tensors.view(torch.bfloat16)
    return _channels_first(tensors, spec)


def _channels_first(tensors: torch.Tensor, spec: Spec) -> torch.Tensor:
    return tensors if spec.layout == "chw" else tensors.permute(0, 3, 1, 2)
