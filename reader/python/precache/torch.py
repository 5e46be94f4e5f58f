# SPDX-License-Identifier: Apache-2.0
"""Batches as torch tensors, and datasets for torch's DataLoader.

>>> loader = precache.torch.Loader(folder, batch_size=4, shuffle="full", dtype="float32", normalize="imagenet")
>>> for images, labels in loader:
...     pass  # your step
>>> images.shape, images.dtype
(torch.Size([4, 3, 32, 32]), torch.float32)
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

try:
    import torch
except ModuleNotFoundError as error:
    if error.name == "torch":
        error.msg += "; precache.torch needs it: pip install 'precache[torch]'"
    raise
import torch.distributed
import torch.utils.dlpack
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

from . import _accelerate, _dataset, _iteration, _loader, _options, _reader
from ._arrays import Spec, as_tensors
from ._dataloader import without_arguments
from ._dataset import Array, PathLike
from ._device import DeviceTensor
from ._errors import InvalidArgument, Unsupported, name_arguments

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11 on

    from ._keywords import SplitOptions, TorchLoaderOptions

__all__ = ["Dataset", "Loader"]

_MOST_DEVICE_BATCHES = 1024
_PATHS = ("auto", "staged", "strided", "gather", "resident")


class Loader(_loader.Loader):
    """A `precache.Loader` of torch tensors: images of (batch, channels, height, width), labels of int64.

    In addition to the attributes of `precache.Loader` it has `batch_sampler` and `pin_memory`, so that Lightning,
    Accelerate, the Trainer of transformers and timm take it in place of a DataLoader.

    Args:
        dataset: A `precache.Dataset`, a `precache.torch.Dataset` without transforms, or a path that `precache.open` takes.
        batch_size: Samples in a batch of this rank.
        channels_last: The memory format: True, False, or None for the stored one, which needs no conversion.
        device: Where the tensors are. For a CUDA device the loader copies ahead, and crops, flips and converts on the GPU
            (docs/gpu.md); the current stream waits for the batch. If the loader cannot do that, for example because it was
            built without CUDA, torch moves the tensors; `stats()["device"]["reason"]` says which and why.
        device_batches: Batches on a CUDA device, held by you or being copied. One must be free at each step.
        device_path: "auto", or "staged", "strided", "gather" or "resident" to use that path or raise an error. "resident"
            copies the whole dataset to the device once; after that, the device makes the batches by itself.
        pin_shards_up_to: Pin the shards if they have at most so many bytes in all, and copy from them to the CUDA device
            directly. Pinned memory is not swapped out.
        resident_up_to: For device_path="resident": the most bytes that the dataset may take on the device.
        pin_memory: Put batches into page-locked memory, from which a GPU copies in the background. By default on if torch
            has a CUDA device, unless `device` is another one. True without such a device is a warning.
        views: A list of lists of operations: each sample gives as many images. Or True: return sequential batches that need
            no conversion as views of the shard's pages, which is faster. Torch has no read-only tensors: writing to such a
            batch in place kills the process.
        **options: All other options of `precache.Loader` except `layout`. Without `views=True` all batches are writable.
            Arguments of torch's DataLoader are taken, too: `num_workers` says nothing, because threads fill the batches;
            others without effect, such as `generator`, are a warning; `collate_fn`, `sampler` and `batch_sampler` are
            refused with what to use instead.
    """

    # As in a DataLoader without workers; those that make a DataLoader of another one copy them.
    collate_fn = staticmethod(default_collate)
    worker_init_fn = multiprocessing_context = generator = None
    persistent_workers = False
    pin_memory_device = ""
    timeout = 0
    in_order = True

    def __init__(
        self,
        dataset: _dataset.Dataset | Dataset | PathLike | Sequence[PathLike],
        batch_size: int = 256,
        *,
        channels_last: bool | None = None,
        device: torch.device | str | None = None,
        device_batches: int = 3,
        device_path: Literal["auto", "staged", "strided", "gather", "resident"] = "auto",
        pin_shards_up_to: int = 0,
        resident_up_to: int = 8 << 30,
        pin_memory: bool | None = None,
        writable: bool = False,
        views: bool | Sequence[Any] = False,
        **options: Unpack[TorchLoaderOptions],
    ):
        if "layout" in options:
            raise TypeError("precache.torch.Loader has no layout: use channels_last for the memory format")
        rest = without_arguments(options)
        lists = views if isinstance(views, Sequence) else None
        pages = lists is None and _options.truth("views", views)
        if pages and _options.truth("writable", writable):
            raise InvalidArgument(
                "writable cannot be combined with views", hint="Views of a shard must not be written to."
            )
        if channels_last is not None:
            channels_last = _options.truth("channels_last", channels_last)
        self.device = None if device is None else torch.device(device)
        to_cuda = self.device is not None and self.device.type == "cuda"
        asked_to_pin = pin_memory is not None and _options.truth("pin_memory", pin_memory)
        if asked_to_pin and not to_cuda and (reason := _why_not_pinned()):
            warnings.warn(f"pin_memory is True, but torch cannot pin memory: {reason}", stacklevel=2)
            asked_to_pin, pin_memory = False, False
        self._must_pin = asked_to_pin
        # By default, the first batch shows whether torch can pin memory. Trying it here would create a context on a GPU
        # before the program has chosen one.
        by_default = to_cuda or (self.device is None and torch.cuda.is_available())
        self.pin_memory = by_default if pin_memory is None else self._must_pin
        self._device_batches = _options.count("device_batches", device_batches, _MOST_DEVICE_BATCHES, least=1)
        self._path = _options.one_of("device_path", device_path, _PATHS)
        self._pin_shards_up_to = _options.count("pin_shards_up_to", pin_shards_up_to)
        self._resident_up_to = _options.count("resident_up_to", resident_up_to)
        self._moved_because: str | None = None
        if self._path != "auto" and not to_cuda:
            raise InvalidArgument(f"device_path={device_path!r} needs a CUDA device, got device={device!r}")
        super().__init__(
            cast(Any, dataset),  # `opened` takes the dataset out of a Dataset of this module
            batch_size,
            layout=None if channels_last is None else "hwc" if channels_last else "chw",
            writable=not pages,
            views=lists,
            **rest,
        )

    @property
    def sampler(self) -> Sampler | StoredOrder:
        """For training loops that look at the sampler of a DataLoader: one of torch's SequentialSampler without a shuffle."""
        return Sampler(self) if self._shuffled else StoredOrder(self)

    @property
    def batch_sampler(self) -> BatchSampler:
        """For programs that make a DataLoader from `dataset` and `batch_sampler`, as Accelerate does to skip batches."""
        return BatchSampler(self)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:  # type: ignore[override]
        _accelerate.note_batch(self, is_over=True)
        batches: Iterator[Any] = super().__iter__()
        self._began_at = self.state_dict()["position"]
        return batches

    def _next(self, iteration: object) -> Any:
        batch = super()._next(iteration)
        _accelerate.note_batch(self, is_over=batch is None)
        return batch

    @property
    def end_of_dataloader(self) -> bool:
        """Whether the batch that was returned last is the epoch's last one. Accelerate then synchronises gradients."""
        return self._open().batches_left == 0

    @property
    def remainder(self) -> int:
        """Samples of the last step of all ranks, without repeats; Accelerate's gather_for_metrics drops what is beyond."""
        whole = self.batch_size * self._place[1]
        return -1 if self.drop_last else (len(self.dataset) - self._began_at) % whole

    def _make_native(self, options: _reader.LoaderOptions) -> _loader.AnyLoader:
        if self.device is None or self.device.type != "cuda":
            return super()._make_native(options)
        if not torch.cuda.is_available():
            raise Unsupported(
                f"device is {str(self.device)!r}, but torch finds no CUDA device", hint="Leave out device."
            )
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
                resident_up_to=self._resident_up_to,
            )
        except Unsupported as error:
            if self._path != "auto":
                raise
            self._moved_because = error.message
        return super()._make_native(options)

    def _arrays(self, batch: _reader.Batch | _reader.DeviceBatch) -> tuple[Any, torch.Tensor]:
        views = range(len(self._pixels.lists))
        if isinstance(batch, _reader.DeviceBatch):
            placed = [torch.utils.dlpack.from_dlpack(DeviceTensor(batch, labels=False, view=view)) for view in views]
            images = [_channels_first(tensor, self.spec) for tensor in placed]
            labels = torch.utils.dlpack.from_dlpack(DeviceTensor(batch, labels=True))
            return (tuple(images) if self._pixels.has_views else images[0]), labels
        placed = [
            self._placed(_tensors(self._rows(batch, view, may_write=True), Spec(*batch.spec(view)))) for view in views
        ]
        labels = self._placed(torch.from_numpy(batch.labels()))
        return (tuple(placed) if self._pixels.has_views else placed[0]), labels

    def _column_arrays(self, batch: Any) -> dict[str, Any]:
        return {name: self._placed(torch.from_numpy(array)) for name, array in super()._column_arrays(batch).items()}

    def _placed(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor in page-locked memory and on the device, if they were asked for."""
        if self.pin_memory:
            try:
                tensor = tensor.pin_memory()
            except RuntimeError:  # too much memory is locked, or the process was forked
                if self._must_pin:
                    raise
                self.pin_memory = False
        return tensor if self.device is None else tensor.to(self.device, non_blocking=self.pin_memory)

    def stats(self) -> dict[str, Any]:
        """As in `precache.Loader`; for a CUDA device, "device" says how batches get there."""
        stats = super().stats()
        if self._moved_because is not None:
            stats["device"] = {"reason": f"Moved by torch: {self._moved_because}."}
        elif "device" in stats:
            stats["device"]["reason"] = name_arguments(stats["device"]["reason"])
        return stats


class Dataset(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """A map-style dataset for `torch.utils.data.DataLoader`: (image, label), the image of (channels, height, width).

    Each image is a copy. It works with any number of workers, forked or spawned. `precache.torch.Loader` is several times
    as fast if its crops, flips and normalisation are enough. A subclass may define its own `__getitem__`; DataLoader then
    reads samples one by one.

    Args:
        dataset: A `precache.Dataset`, or a path that `precache.open` takes.
        transform: Applied to each image, a tensor.
        target_transform: Applied to each label.
        pil: Give `transform` PIL images, for transforms of torchvision's first version and of timm. Without a transform,
            images are PIL images.
        columns: Named columns of the dataset. Samples are then dicts: "image", "label" and these columns as tensors, and
            `transform` gets the dict. Image and mask have the types of torchvision's tv_tensors, so that transforms of its
            second version move both together.
        **options: Options of `precache.open`.

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
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        *,
        pil: bool = False,
        columns: Sequence[str] | None = None,
        **options: Unpack[SplitOptions],
    ):
        if isinstance(dataset, _dataset.Dataset) and options:
            raise InvalidArgument(
                f"{', '.join(options)} cannot change an open dataset", hint="Give it to precache.open."
            )
        self.dataset = dataset if isinstance(dataset, _dataset.Dataset) else _dataset.open(dataset, **options)
        self.transform = transform
        self.target_transform = target_transform
        self.pil = _options.truth("pil", pil)
        self.columns = [] if columns is None else _options.columns(columns)
        for name in self.columns:
            self.dataset.column(name, [])  # raises now, not in a worker
        if self.pil and self.dataset.spec.dtype != "uint8":
            raise InvalidArgument(f"pil needs uint8 tensors, but those of the dataset are {self.dataset.spec.dtype}")
        self.classes = self.dataset.classes
        self.class_to_idx = self.dataset.class_to_idx

    @property
    def num_classes(self) -> int:
        """Number of classes: of the class names, or else the largest label plus one."""
        return self.dataset.num_classes

    @property
    def targets(self) -> list[Any]:
        """All labels, without `target_transform`."""
        return self.dataset.targets

    @property
    def samples(self) -> list[tuple[str, int]]:
        """(key, label) of all samples."""
        return self.dataset.samples

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        try:
            number = operator.index(index)
        except TypeError:
            raise TypeError(f"index must be a whole number, got {index!r}") from None
        sample: Any = self._samples([number])[0]
        return sample if self.columns else (sample[0], sample[1])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples of a batch at once, as DataLoader reads them."""
        # DataLoader and Subset prefer this to __getitem__, so they would bypass the __getitem__ of a subclass.
        if type(self).__getitem__ is not Dataset.__getitem__:
            return [self[index] for index in indices]
        return self._samples(indices)

    def _samples(self, indices: Sequence[int]) -> list[Any]:
        rows, labels = self.dataset._gather_rows(indices)
        images = _tensors(rows, self.dataset.spec)
        if self.columns:
            return self._dicts(images, labels.tolist(), indices)
        if self.transform is not None or self.target_transform is not None or self.pil:
            transform, target_transform = self.transform or _unchanged, self.target_transform or _unchanged
            inputs = map(_pil_image, images) if self.pil else images
            return [
                (transform(image), target_transform(label))
                for image, label in zip(inputs, labels.tolist(), strict=True)
            ]
        samples = _Gathered(map(_Sample, zip(images, labels.tolist(), strict=True)))
        samples.gathered = tuple(samples)
        samples.batch = [images, torch.from_numpy(labels)]
        return samples

    def _dicts(self, images: torch.Tensor, labels: list[int], indices: Sequence[int]) -> list[Any]:
        columns = {name: torch.from_numpy(self.dataset.column(name, indices)) for name in self.columns}
        types = None if self.transform is None else _tv_tensors()
        samples = []
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            sample = {
                "image": _pil_image(image) if self.pil else image,
                "label": label if self.target_transform is None else self.target_transform(label),
                **{name: values[i] for name, values in columns.items()},
            }
            if types is not None:  # without them, v2 changes the image alone
                sample["image"] = sample["image"] if self.pil else types.Image(image)
                if "mask" in columns:
                    sample["mask"] = types.Mask(sample["mask"])
            samples.append(sample if self.transform is None else self.transform(sample))
        return samples


class Sampler(_iteration.Sampler, torch.utils.data.Sampler[int]):
    """The order of a loader, with the type of torch's samplers."""

    def __init__(self, loader: Loader):
        _iteration.Sampler.__init__(self, loader)


class StoredOrder(_iteration.Sampler, torch.utils.data.SequentialSampler):
    """The order of a loader without a shuffle. Lightning looks for this type before it overfits some batches."""

    def __init__(self, loader: Loader):
        _iteration.Sampler.__init__(self, loader)
        self.data_source = loader.dataset


class BatchSampler:
    """Yields the batches of a loader in place of indices. A DataLoader of the loader's dataset passes them on."""

    def __init__(self, loader: Loader):
        self._loader = loader
        self.sampler = loader.sampler
        self.batch_size = loader.batch_size
        self.drop_last = loader.drop_last

    def set_epoch(self, epoch: int) -> None:
        """The same as `set_epoch` of the loader."""
        self._loader.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[list[_dataset.ReadyBatch]]:
        return ([_dataset.ReadyBatch(batch)] for batch in self._loader)


class _Sample(tuple[torch.Tensor, int]):
    """(image, label); torch finds `_collate` by this type."""


class _Gathered(list[_Sample]):
    """Samples of a batch that is already one piece of memory; a list, because torch gives lists to a collate_fn."""

    gathered: tuple[_Sample, ...]
    batch: list[torch.Tensor]

    def is_whole(self) -> bool:
        """Whether it still has all gathered samples, in that order."""
        return len(self) == len(self.gathered) and all(map(operator.is_, self, self.gathered))


def _collate(samples: Sequence[_Sample], **_: Any) -> Any:
    """Used by torch's default_collate for these samples: a batch that is already one piece is not copied again."""
    if isinstance(samples, _Gathered) and samples.is_whole():
        return samples.batch
    return default_collate([tuple(sample) for sample in samples])


def _collate_ready(batches: Sequence[_dataset.ReadyBatch], **_: Any) -> Any:
    return batches[0].batch


default_collate_fn_map[_Sample] = _collate
default_collate_fn_map[_dataset.ReadyBatch] = _collate_ready
_accelerate.join_when_imported(Loader)


def _why_not_pinned() -> str:
    """The reason if torch cannot pin memory, or else ""."""
    try:
        torch.empty(1).pin_memory()
    except (RuntimeError, AssertionError) as error:  # AssertionError: torch was built without CUDA
        return str(error).strip().splitlines()[0]
    return ""


@functools.cache
def _tv_tensors() -> Any:
    """torchvision's types of images and masks; None without torchvision."""
    try:
        from torchvision import tv_tensors
    except ImportError:  # also of a torchvision before 0.16
        return None
    return tv_tensors


def _unchanged(value: Any) -> Any:
    return value


def _pil_image(image: torch.Tensor) -> Any:
    from PIL import Image

    pixels = image.permute(1, 2, 0).numpy()
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def _tensors(rows: Array, spec: Spec) -> torch.Tensor:
    """Views rows of bytes, one for each image, as images of (channels, height, width)."""
    # from_numpy does not support bfloat16: pass the bits as int16, which every version of torch has.
    bits = spec._replace(dtype="int16") if spec.dtype == "bfloat16" else spec
    tensors = torch.from_numpy(as_tensors(rows, bits))
    if spec.dtype == "bfloat16":
        tensors = tensors.view(torch.bfloat16)
    return _channels_first(tensors, spec)


def _channels_first(tensors: torch.Tensor, spec: Spec) -> torch.Tensor:
    return tensors if spec.layout == "chw" else tensors.permute(0, 3, 1, 2)
