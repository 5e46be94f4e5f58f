# SPDX-License-Identifier: Apache-2.0
"""Batches of an epoch, prepared ahead by threads that do not hold the GIL."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _keras, _options, _ranges, _reader
from ._arrays import Spec, as_tensors, size_of
from ._dataset import Array, Dataset, PathLike, opened
from ._errors import InvalidArgument
from ._imports import when_imported
from ._iteration import Iteration, Sampler
from ._options import Crop, Normalization
from ._pixels import Schedule, pixels
from ._place import current_place
from ._translate import Translation

if TYPE_CHECKING:
    from typing_extensions import Self  # typing has it from Python 3.11 on

AnyLoader = _reader.Loader | _reader.DeviceLoader

_MOST_THREADS = 4096  # more is a mistake, and some systems fail while they are started
_MOST_BATCHES_AHEAD = 2**20
_LARGEST_BATCH = 2**32 - 1
_LARGEST_WORLD = 2**24
_MOST_REPEATS = 2**16


class Loader:
    """Yields (images, labels) as numpy arrays, one epoch for each `for`.

    >>> loader = Loader(dataset, batch_size=4, shuffle=True, dtype="float32", normalize="imagenet")
    >>> for images, labels in loader:
    ...     pass
    >>> images.shape, images.dtype, labels.shape
    ((4, 3, 32, 32), dtype('float32'), (4,))

    A batch does not change while one of its arrays is referenced: its buffer is reused only after that, and the loader
    allocates new ones meanwhile. Batches that you keep cost memory. Images are read-only if they are a view of the shard.
    Copies can be written to; with `writable` or a shuffle, all batches are copies.

    The order depends only on (seed, epoch, shuffle), not on threads, ranks or batch size. Each `for` reads the next epoch,
    even if the one before was left early; `set_epoch` and `load_state_dict` go anywhere else.

    A loader is pickled by the path of its dataset, its options and its state. It has the attributes that training loops
    look for in torch's DataLoader: `dataset`, `sampler`, `batch_size`, `drop_last`, `num_workers`.

    Args:
        dataset: A `Dataset`, or a path that `precache.open` takes.
        batch_size: Samples in a batch of this rank.
        split: The split to open, if `dataset` is a path.
        shuffle: True or "full" permutes all samples. "block" mixes blocks of neighbours within a window: it reads large
            ranges and suits datasets that do not fit into the page cache. None or False keeps the stored order.
        weights: A weight for each sample. Samples are then drawn with replacement, in proportion to their weights.
        seed: Seed of the order and of all draws.
        rank, world_size: Which slice of each step belongs to this process. By default those of torch's process group, of
            `jax.distributed`, or of the environment variables RANK and WORLD_SIZE. The first `for` fixes them; if they
            differ later, the loader raises InvalidArgument.
        last_batch: What to do with samples at the end of an epoch that do not fill a batch on every rank: "drop" (the
            default with a shuffle); "keep" (the default of one rank without a shuffle), where the ranks share them in
            shorter batches; "even" (the default of several ranks without a shuffle), where some of the epoch's first
            samples make the shorter batches of all ranks equal, as in torch's DistributedSampler; or "pad", where the
            epoch's first samples fill up the batches.
        drop_last: The name that torch uses: True is "drop", False is "keep", or "even" for several ranks.
        transform: A list of operations of `precache.transforms`, or the Compose of torchvision that you have. What cannot
            run is refused by name; `loader.transforms` says what runs.
        views: A list of such lists: each sample gives as many images, and the loader yields a tuple of arrays.
        size: Sizes by epoch, for training that begins with small images: {0: 128, 10: 176}, or a function of the epoch,
            which must always give an epoch the same size. `set_size` changes it by hand.
        max_size: Batches have memory for this size, so a function or `set_size` may ask for as many pixels; by default the
            largest size of `size`, or that of the list.
        repeats: Each sample comes so many times in a row, with other draws, and each epoch has only this part of the
            samples.
        crop: N, (height, width) or a `Crop`. The place is random unless the crop says "center".
        flip: Mirror each sample with a probability of one half; "alternate" mirrors a random half of the samples in even
            epochs and the other half in odd ones.
        normalize: "imagenet", (mean, std), each a number or one for every channel, or torchvision's Normalize:
            (x/255 - mean) / std.
        dtype: "uint8", "float16", "bfloat16" or "float32", or the type of numpy, torch or JAX; by default float32 with
            `normalize`, otherwise the stored type. Stored uint8 values are divided by 255 to become floats from 0 to 1,
            even without `normalize`.
        layout: "chw" or "hwc"; by default as stored.
        columns: Named columns of the dataset, such as ["mask", "age"]. The loader then yields dicts: "image", "label" and
            these columns as arrays of (batch, *shape). A mask moves with its image, and its values never change.
        mask_fill: The value of masks in borders and in places outside the image, such as the class that a loss ignores; by
            default the `fill` of the operation.
        batch_transform: Called with the images and labels of each batch, or with the dict if there are `columns`, in the
            thread that asks for it; the loader yields what it returns. For MixUp, for example.
        as_dict: Two names, to yield dicts: ("pixel_values", "labels"). With `columns`, the names of these two.
        threads: Threads that fill batches; 0 is one for each CPU of the process.
        prefetch: Batches to fill ahead.
        writable: Copy all batches, so that they can be written to. Without it, sequential batches that need no conversion
            are read-only views of the shard.
        block_rows, window_blocks: Samples of a block and blocks of a window, for shuffle="block".
    """

    num_workers = 0  # threads fill the batches, not processes
    prefetch_factor = None  # as in a DataLoader without workers

    def __init__(
        self,
        dataset: Dataset | PathLike | Sequence[PathLike],
        batch_size: int = 256,
        *,
        split: str | None = None,
        shuffle: Literal["block", "full"] | bool | None = None,
        weights: Sequence[float] | Array | None = None,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        last_batch: Literal["drop", "pad", "keep", "even"] | None = None,
        drop_last: bool | None = None,
        transform: Any = None,
        views: Sequence[Any] | None = None,
        size: Mapping[int, int | tuple[int, int]] | Callable[[int], int | tuple[int, int] | None] | None = None,
        max_size: int | tuple[int, int] | None = None,
        repeats: int = 1,
        crop: int | tuple[int, int] | Crop | None = None,
        flip: bool | Literal["alternate"] = False,
        normalize: Normalization | None = None,
        dtype: Any = None,
        layout: Literal["chw", "hwc"] | None = None,
        columns: Sequence[str] | None = None,
        mask_fill: int | None = None,
        batch_transform: Callable[..., Any] | None = None,
        as_dict: tuple[str, str] | None = None,
        threads: int = 0,
        prefetch: int = 3,
        writable: bool = False,
        block_rows: int = 64,
        window_blocks: int = 64,
    ):
        self.dataset = opened(dataset, split)
        self.batch_size = _options.count("batch_size", batch_size, _LARGEST_BATCH, least=1)
        made = pixels(self.dataset, transform, views, crop, flip, normalize, dtype)
        self._pixels = made
        self._schedule = None if size is None else Schedule(size)
        self._set_sizes: dict[tuple[int, int], tuple[int, int]] = {}  # by (view, epoch)
        kind = _options.shuffle(shuffle)
        if weights is not None and kind == "full":
            kind = "none"  # weighted draws are in random order
        # Shuffled samples can be neighbours by chance; whether a batch is writable must not depend on that.
        self._shuffled = kind != "none" or weights is not None
        self._end = (last_batch, drop_last, "weighted" if weights is not None else kind)
        self._take_hooks(batch_transform, as_dict, columns)
        self._options: dict[str, Any] = {
            "batch_size": self.batch_size,
            "shuffle": kind,
            "block_rows": _options.count("block_rows", block_rows, least=1),
            "window_blocks": _options.count("window_blocks", window_blocks, least=1),
            "seed": _options.count("seed", seed),
            **made.native,
            "sizes": [] if self._schedule is None else self._schedule.changes,
            "max_size": None if max_size is None else _ranges.sides("max_size", max_size),
            "repeats": _options.count("repeats", repeats, _MOST_REPEATS, least=1),
            "mask_fill": None if mask_fill is None else _options.count("mask_fill", mask_fill, 255),
            "layout": None if layout is None else _options.one_of("layout", layout, _options.LAYOUTS),
            "threads": _options.count("threads", threads, _MOST_THREADS),
            "prefetch": _options.count("prefetch", prefetch, _MOST_BATCHES_AHEAD, least=1),
            "writable": _options.truth("writable", writable) or self._shuffled,
            "subset": self.dataset._indices,
            "weights": None if weights is None else _options.weights(weights),
            "columns": self._columns,
        }
        self._given_place = (
            None if rank is None else _options.count("rank", rank),
            None if world_size is None else _options.count("world_size", world_size, _LARGEST_WORLD, least=1),
        )
        self._begin()
        translated = (warning for each in made.lists for warning in each.warnings)
        for warning in dict.fromkeys((*self._open().warnings, *translated)):
            warnings.warn(warning, stacklevel=2 if type(self) is Loader else 3)

    def _take_hooks(
        self, batch_transform: Callable[..., Any] | None, as_dict: tuple[str, str] | None, columns: Sequence[str] | None
    ) -> None:
        """Sets what the loader yields."""
        if batch_transform is not None and not callable(batch_transform):
            raise TypeError(f"batch_transform must be a function, got {batch_transform!r}")
        self._batch_transform = batch_transform
        self._names = None if as_dict is None else _options.names(as_dict)
        self._columns = [] if columns is None else _options.columns(columns)
        if self._columns:
            self._names = self._names or ("image", "label")
            if both := set(self._names) & set(self._columns):
                raise InvalidArgument(f"{both.pop()!r} is in columns and names the images or labels")

    def _begin(self) -> None:
        """Makes the native loader, at the beginning of its first epoch."""
        self._place = self._current_place()
        self._has_begun = False  # from then on, rank and world size are fixed
        self._native: AnyLoader | None = self._make()
        self._start = self._native.state()  # that of the next epoch, until one has begun
        _ = self.spec.numpy_dtype if type(self) is Loader else None  # raises now, not at the first batch
        self._was_read = False  # since the last call of iter(), set_epoch() or load_state_dict()
        self._has_failed = False
        self._iteration: object = None
        self._interruption = ""  # why an iteration that is not the current one is over

    def _make(self) -> AnyLoader:
        rank, world_size = self._place
        self._process = os.getpid()
        self.last_batch = _options.last_batch(*self._end, world_size)
        native = self._make_native(
            _reader.LoaderOptions(**self._options, last_batch=self.last_batch, rank=rank, world_size=world_size)
        )
        if self.last_batch == "drop" and len(self.dataset) != 0 and native.batches_per_epoch == 0:
            step = f"{world_size} x {self.batch_size}" if world_size != 1 else f"{self.batch_size}"
            raise InvalidArgument(
                f"the dataset has {len(self.dataset)} samples, fewer than one batch of {step}",
                hint="Use a smaller batch_size, or last_batch='keep', 'even' or 'pad'.",
            )
        self._own_size = size_of(Spec(*native.spec))
        for (view, epoch), size in self._set_sizes.items():
            native.set_size(*size, view, epoch)
        self._follow_schedule(native, native.epoch)
        self._spec = Spec(*native.spec)
        self._batches = f"{native.batches_per_epoch} batches of {self.batch_size}"
        return native

    def _make_native(self, options: _reader.LoaderOptions) -> AnyLoader:
        return _reader.Loader(self.dataset._native, options)

    def _current_place(self) -> tuple[int, int]:
        """Rank and world size, as of now."""
        rank, world_size = self._given_place
        if rank is not None and world_size is not None:
            return rank, world_size
        current_rank, current_size = current_place()
        return current_rank if rank is None else rank, current_size if world_size is None else world_size

    @property
    def spec(self) -> Spec:
        """dtype, layout and shape of each row of the next batch, of the first view if there are several."""
        return self._spec if self._native is None else Spec(*self._open().spec)

    @property
    def transforms(self) -> Translation | tuple[Translation, ...]:
        """The operations that run for each sample, and the steps that do not, and why; with `views`, one for each.

        >>> from precache import transforms
        >>> print(Loader(dataset, transform=[transforms.Resize(32), transforms.RandomHorizontalFlip()]).transforms)
        runs     RandomHorizontalFlip(p=0.5, alternate=False)
        dropped  Resize(32): The build already resized the shorter side to 32.
        """
        made = self._pixels.transforms
        return made if self._pixels.has_views else made[0]

    def draw(self, sample: int, epoch: int | None = None, *, repeat: int = 0) -> Any:
        """The draw of a sample of the dataset in an epoch: a dict by operation; with `views`, a tuple of them.

        Rectangles are (top, left, height, width) in stored pixels. None stands for an operation that does nothing to this
        sample. The second operation of a kind is called "Name#2". `epoch` is the current one by default.

        >>> from precache import transforms
        >>> loader = Loader(dataset, transform=[transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()])
        >>> loader.draw(5, epoch=0) == loader.draw(5, epoch=0)
        True
        >>> list(loader.draw(5))
        ['RandomCrop', 'RandomHorizontalFlip']
        """
        native = self._open()
        number = native.epoch if epoch is None else _options.count("epoch", epoch)
        stored = self.dataset._position(sample)
        _options.count("repeat", repeat, self._options["repeats"] - 1)
        self._follow_schedule(native, number)
        draws = tuple(native.draw(stored, number, view, repeat) for view in range(len(self._pixels.lists)))
        return draws if self._pixels.has_views else draws[0]

    def set_size(self, size: int | tuple[int, int], view: int = 0, *, epoch: int | None = None) -> None:
        """Changes the height and width of samples from an epoch on, up to the next epoch whose size was set.

        By default it is the next epoch, or this one if none of its batches was read. Sizes belong to epochs: `set_epoch`,
        `load_state_dict` and copies of the loader find those of their epoch. A state does not hold them.

        The crop, or the last operation that sets a size, such as RandomResizedCrop, makes the new size. Sizes with more
        pixels than `max_size` raise InvalidArgument.
        """
        if self._schedule is not None:
            raise InvalidArgument("size already sets the sizes by epoch", hint="Leave out size= to use set_size().")
        height, width = _ranges.sides("size", size)
        number = _options.count("view", view, len(self._pixels.lists) - 1)
        wanted = None if epoch is None else _options.count("epoch", epoch)
        first = self._open().set_size(height, width, number, wanted)
        self._set_sizes[number, first] = (height, width)

    def _follow_schedule(self, native: AnyLoader, epoch: int) -> None:
        """Asks a function for the size of an epoch. The loader knows all sizes of a dict."""
        if self._schedule is None or self._schedule.of_epoch is None:
            return
        size = self._schedule.of_epoch(epoch) or self._own_size
        if self._set_sizes.get((0, epoch)) != size:
            native.set_size(*size, 0, epoch)
            self._set_sizes[0, epoch] = size

    @property
    def sampler(self) -> Sampler:
        """For training loops that call `loader.sampler.set_epoch(epoch)`."""
        return Sampler(self)

    @property
    def drop_last(self) -> bool:
        """Whether samples that do not fill a batch on every rank are dropped."""
        return self.last_batch == "drop"

    @property
    def epoch(self) -> int:
        """The epoch that is being read, or the next one."""
        return self._open().epoch

    def set_epoch(self, epoch: int) -> None:
        """Continues at the beginning of an epoch.

        It does nothing if that is the epoch of a state that was just loaded, or of an iteration from which no batch was
        read yet. So a program may call it before every epoch, even after `load_state_dict`.
        """
        number, native = _options.count("epoch", epoch), self._open()
        if not self._was_read and number == native.epoch:
            return
        self._follow_schedule(native, number)
        native.set_epoch(number)
        self._moved("set_epoch", native)

    def _moved(self, method: str, native: AnyLoader) -> None:
        self._start = native.state()
        if self._was_read:
            self._iteration, self._interruption = None, f"{method}() was called during this iteration"
        self._was_read = False

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        return self._open().batches_per_epoch

    def _rank_samples(self) -> int:
        self._open()  # the process group may be new
        rank, world_size = self._place
        steps, left = divmod(len(self.dataset), self.batch_size * world_size)
        of_last_step = {
            "drop": 0,
            "pad": self.batch_size if left else 0,
            "keep": left // world_size + (rank < left % world_size),
            "even": -(-left // world_size),
        }
        return steps * self.batch_size + of_last_step[self.last_batch]

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        """The batches of the next epoch; after `load_state_dict`, of the rest of its epoch."""
        native = self._open(for_batches=True)
        if self._was_read:
            self._follow_schedule(native, native.epoch + 1)
            native.set_epoch(native.epoch + 1)
        elif self._has_failed:
            native.resume(native.state())  # the cause may be gone
        self._has_begun = True
        self._was_read = self._has_failed = False
        self._follow_schedule(native, native.epoch)
        self._iteration, self._interruption = object(), "another iteration of this loader has begun"
        return Iteration(self, self._iteration)

    def forever(self) -> Iterator[Any]:
        """The batches of one epoch after another, without an end: a generator, as the `fit` of Keras takes it.

        >>> batches = Loader(dataset, batch_size=23, shuffle=True).forever()
        >>> len([next(batches) for _ in range(3)])
        3
        """
        if len(self) == 0:
            raise InvalidArgument("an epoch of this loader has no batches")

        def batches() -> Iterator[Any]:
            while True:
                yield from self

        return batches()

    def _next(self, iteration: object) -> Any:
        """The next batch, or None at the end of the epoch."""
        native = self._open(for_batches=True)
        if self._iteration is not iteration:
            raise InvalidArgument(self._interruption, hint="Make two loaders to read at two places at once.")
        epoch = native.epoch
        try:
            batch = native.next()
        except BaseException:
            self._has_failed = True
            raise
        is_first = batch is not None and not self._was_read
        self._was_read = batch is not None
        if batch is None:
            return None
        if is_first:  # the threads will soon begin with the next epoch
            self._follow_schedule(native, epoch + 1)
        result = self._arrays(batch)
        if self._columns:
            sample = dict(zip(self._names or (), result, strict=True)) | self._column_arrays(batch)
            return sample if self._batch_transform is None else self._batch_transform(sample)
        if self._batch_transform is not None:
            result = self._batch_transform(*result)
        return result if self._names is None else dict(zip(self._names, result, strict=True))

    def _column_arrays(self, batch: Any) -> dict[str, Any]:
        return {name: batch.column(number) for number, name in enumerate(self._columns)}

    def _arrays(self, batch: Any) -> tuple[Any, Any]:
        images = tuple(
            as_tensors(self._rows(batch, view, may_write=False), Spec(*batch.spec(view)))
            for view in range(len(self._pixels.lists))
        )
        return (images if self._pixels.has_views else images[0]), batch.labels()

    def _rows(self, batch: _reader.Batch, view: int, may_write: bool) -> Array:
        """The images of one view as rows of bytes; with `may_write`, pages of the shard are declared writable, too."""
        if batch.is_view and self._shuffled:  # a state set the shuffle after the loader was made without one
            return batch.images(False, view).copy()
        return batch.images(may_write or not batch.is_view, view)

    def state_dict(self) -> dict[str, Any]:
        """The position after the batches returned so far, for a checkpoint. JSON and torch.save can store it.

        A loader with another batch size, world size or number of threads can load it. It is the same on every rank.

        >>> loader = Loader(dataset, batch_size=4, shuffle="full", seed=7)
        >>> batch = next(iter(loader))
        >>> state = loader.state_dict()
        >>> state["epoch"], state["position"], state["samples"]
        (0, 4, 23)
        """
        state: dict[str, Any] = json.loads(self._open().state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state: the next `for` reads the rest of its epoch.

        >>> loader = Loader(dataset, batch_size=4, shuffle="full", seed=7)
        >>> batches = iter(loader)
        >>> _, (images, _) = next(batches), next(batches)
        >>> again = Loader(dataset, batch_size=2)
        >>> again.load_state_dict(loader.state_dict() | {"position": 4})
        >>> bool((next(iter(again))[0] == images[:2]).all())
        True
        """
        if not isinstance(state, Mapping):
            raise InvalidArgument(f"state must be a dict from state_dict(), got {state!r}")
        try:
            text = json.dumps(dict(state))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"the dict is not a loader state: {error}") from None
        native = self._open()
        native.resume(text)
        self._follow_schedule(native, native.epoch)
        self._shuffled = state["shuffle"] != "none"
        self._moved("load_state_dict", native)

    def stats(self) -> dict[str, Any]:
        """Waiting times in seconds, and counts. `stats()["bottleneck"]` says in a sentence what limits the speed."""
        return self._open().stats()

    def close(self) -> None:
        """Ends the loader's threads. Batches already returned stay valid."""
        self._spec, self._native = self.spec, None

    def __repr__(self) -> str:
        try:
            where = f"epoch {self.epoch}"
        except InvalidArgument as error:  # closed, or forked
            where = error.message
        kind = type(self)
        return f"<{kind.__module__}.{kind.__qualname__}: {self._batches}, {self.spec.text}, {where}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        native = None if self._native is None else self._open().state()
        began = {"_iteration": None, "_was_read": False, "_has_begun": False, "_has_failed": False}
        return {**self.__dict__, **began, "_native": native}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._native is not None:
            self._start = state["_native"]
            self._native = self._make_at_start()

    def _make_at_start(self) -> AnyLoader:
        native = self._make()
        native.resume(self._start)
        self._follow_schedule(native, native.epoch)
        return native

    def _open(self, *, for_batches: bool = False) -> AnyLoader:
        """The native loader. Until the first batch is asked for, it follows the process group and works in a forked process."""
        if self._native is None:
            raise InvalidArgument("the loader is closed")
        if not self._has_begun and self._process != os.getpid():  # its threads stayed in the parent
            self._place = self._current_place()
            self._native = self._make_at_start()
        elif (for_batches or not self._has_begun) and self._current_place() != self._place:
            (rank, world_size), (now, size) = self._place, self._current_place()
            if self._has_begun:
                raise InvalidArgument(
                    f"this loader began as rank {rank} of {world_size}, and the process is now rank {now} of {size}",
                    hint="Iterate it only after init_process_group and before destroy_process_group, or give rank and world_size.",
                )
            self._place = (now, size)
            self._native = self._make_at_start()
        return self._native


when_imported(_keras.MODULE, lambda: _keras.join(Loader))
