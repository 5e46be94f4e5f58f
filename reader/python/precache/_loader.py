# SPDX-License-Identifier: Apache-2.0
"""Batches of an epoch, filled ahead by threads that do not need the interpreter."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import _options, _reader
from ._arrays import Spec, as_tensors
from ._dataset import Array, Dataset, PathLike
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from typing_extensions import Self  # typing has it from Python 3.11 on

Numbers = float | Sequence[float]
AnyLoader = _reader.Loader | _reader.DeviceLoader

_MOST_THREADS = 4096  # more would be a mistake, and some systems break down while they are made
_MOST_BATCHES_AHEAD = 2**20
_LARGEST_BATCH = 2**32 - 1
_LARGEST_WORLD = 2**24


class Crop(NamedTuple):
    """A crop that a loader takes of each sample: at a random place, or the centre."""

    height: int
    width: int
    place: Literal["random", "center"] = "random"


class _Iteration(Iterator[tuple[Array, Array]]):
    """The batches of an epoch. A generator's frame would keep each batch, and a closed loader's threads, until the next."""

    def __init__(self, loader: Loader, name: object):
        self._loader: Loader | None = loader
        self._name = name  # by which the loader knows it, without a circle of references
        self._turn = threading.RLock()

    def __next__(self) -> tuple[Array, Array]:
        with self._turn:  # of threads that share it, none gets a batch of the next epoch when another finds the end
            arrays = self._loader._next(self._name) if self._loader is not None else None
            if arrays is None:
                self._loader = None
                raise StopIteration
            return arrays


class Loader:
    """Hands out (images, labels) as numpy arrays, one epoch with each `for`.

    >>> loader = Loader(dataset, batch_size=4, shuffle="full", dtype="float32", normalize="imagenet")
    >>> for images, labels in loader:
    ...     pass
    >>> images.shape, images.dtype, labels.shape
    ((4, 3, 32, 32), dtype('float32'), (4,))

    A batch stays as it is for as long as one of its arrays is referenced: a buffer is used again only when it is
    not held, and new ones are made meanwhile, so what is kept costs memory and never changes. Images are read-only
    where they are a view of the shard, and may be written to where they are a copy, as all are with `writable` or a
    shuffle.

    The order depends on (seed, epoch, shuffle) alone, not on threads, ranks or batch size.

    Args:
        dataset: a `Dataset`, or what `precache.open` takes.
        batch_size: of this rank.
        shuffle: None; "full", every sample anywhere; or "block", blocks of neighbours mixed within a window, which
            reads large ranges and suits what does not fit the page cache.
        seed: of the order, the crops and the flips.
        rank, world_size: which slice of each step is this process's.
        last_batch: what happens to samples at the end of an epoch that do not fill a batch on every rank: "drop" (the
            default), "pad" with the epoch's first samples, or "keep" as a shorter batch.
        drop_last: the same as torch has it: True is "drop", False is "keep".
        crop: N, (height, width) or a `Crop`: random places, unless it says "center".
        flip: mirror a random half of the samples.
        normalize: "imagenet" or (mean, std), each a number or one for every channel: (x/255 - mean) / std.
        dtype: "uint8", "float16", "bfloat16" or "float32", or the same of numpy, torch or JAX; by default float32 with
            `normalize`, else as stored. Stored uint8 become floats from 0 to 1: they are divided by 255, also without
            `normalize`.
        layout: "chw" or "hwc"; by default as stored.
        threads: that fill batches; 0: what the process may use.
        prefetch: batches that are filled ahead.
        writable: let every batch be written to: all are copies. With False, sequential batches without a conversion are
            read-only views of the shard.
        block_rows, window_blocks: of the shuffle "block".
    """

    def __init__(
        self,
        dataset: Dataset | PathLike | Sequence[PathLike],
        batch_size: int = 256,
        *,
        shuffle: Literal["block", "full"] | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        last_batch: Literal["drop", "pad", "keep"] | None = None,
        drop_last: bool | None = None,
        crop: int | tuple[int, int] | Crop | None = None,
        flip: bool = False,
        normalize: Literal["imagenet"] | tuple[Numbers, Numbers] | None = None,
        dtype: Any = None,
        layout: Literal["chw", "hwc"] | None = None,
        threads: int = 0,
        prefetch: int = 3,
        writable: bool = False,
        block_rows: int = 64,
        window_blocks: int = 64,
    ):
        self.dataset = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
        if normalize is not None and dtype is None:
            dtype = "float32"
        kind = _options.one_of("shuffle", shuffle or "none", ("none", "block", "full"))
        # Shuffled samples may lie side by side by chance: whether a batch can be written to would be chance, too.
        self._shuffled = kind != "none"
        ending = _options.last_batch(last_batch, drop_last)
        checked = _reader.LoaderOptions(
            batch_size=_options.count("batch_size", batch_size, _LARGEST_BATCH, least=1),
            shuffle=kind,
            block_rows=_options.count("block_rows", block_rows, least=1),
            window_blocks=_options.count("window_blocks", window_blocks, least=1),
            seed=_options.count("seed", seed),
            rank=_options.count("rank", rank),
            world_size=_options.count("world_size", world_size, _LARGEST_WORLD, least=1),
            last_batch=ending,
            crop=None if crop is None else _options.crop(crop),
            flip=_options.truth("flip", flip),
            normalize=None if normalize is None else _options.normalization(normalize),
            dtype=None if dtype is None else _options.dtype(dtype),
            layout=None if layout is None else _options.one_of("layout", layout, _options.LAYOUTS),
            threads=_options.count("threads", threads, _MOST_THREADS),
            prefetch=_options.count("prefetch", prefetch, _MOST_BATCHES_AHEAD, least=1),
            writable=_options.truth("writable", writable) or self._shuffled,
        )
        self._native: AnyLoader | None = self._make_native(checked)
        if ending == "drop" and len(self.dataset) != 0 and self._native.batches_per_epoch == 0:
            step = f"{world_size} x {batch_size}" if world_size != 1 else f"{batch_size}"
            raise InvalidArgument(
                f"no batch of {step} samples fits a dataset of {len(self.dataset)}",
                hint="Use a smaller batch_size, or last_batch='keep' or 'pad'.",
            )
        self._spec = Spec(*self._native.spec)
        self._batches = f"{self._native.batches_per_epoch} batches of {batch_size}"
        _ = self._spec.numpy_dtype if type(self) is Loader else None  # raises now, not at the first batch
        self._iteration: object = None
        self._resumed = False
        for warning in self._native.warnings:
            warnings.warn(warning, stacklevel=2 if type(self) is Loader else 3)

    def _make_native(self, options: _reader.LoaderOptions) -> AnyLoader:
        return _reader.Loader(self.dataset._native, options)

    @property
    def spec(self) -> Spec:
        """What each row of a batch is."""
        return self._spec

    @property
    def epoch(self) -> int:
        """The epoch that is being read, or comes next."""
        return self._open().epoch

    def set_epoch(self, epoch: int) -> None:
        """Continues at the beginning of an epoch. Without it, each full iteration is followed by the next epoch.

        For the epoch of a state that was just loaded it does nothing: the next `for` reads what is left. So a program
        that calls this before every epoch need not skip it after `load_state_dict`.
        """
        number, native = _options.count("epoch", epoch), self._open()
        if self._resumed and number == native.epoch:
            return
        native.set_epoch(number)
        self._iteration = None
        self._resumed = False

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._open().batches_per_epoch

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        """One epoch, from its beginning; after `load_state_dict`, what is left of it."""
        native = self._open()
        if not self._resumed:
            # An iteration that was left early restarts, but not one that only did not look for the end.
            was_read = native.batches_left == 0 and native.batches_per_epoch != 0
            native.set_epoch(native.epoch + was_read)
        self._resumed = False
        self._iteration = object()
        return _Iteration(self, self._iteration)

    def _next(self, iteration: object) -> tuple[Any, Any] | None:
        """The next batch, or None at the end of the epoch."""
        native = self._open()
        if self._iteration is not iteration:
            raise InvalidArgument(
                "another iteration of this loader has begun", hint="Make two loaders to read at two places at once."
            )
        batch = native.next()
        return None if batch is None else self._arrays(batch)

    def _arrays(self, batch: Any) -> tuple[Any, Any]:
        return as_tensors(self._rows(batch, may_write=False), self._spec), batch.labels()

    def _rows(self, batch: _reader.Batch, may_write: bool) -> Array:
        """A batch's images as bytes; `may_write` of views, too."""
        if batch.is_view and self._shuffled:  # by a state: the loader was made without a shuffle
            return batch.images(False).copy()
        return batch.images(may_write or not batch.is_view)

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands, after the batches that were returned: for a checkpoint, as JSON or by torch.save.

        It can be loaded with another batch size, world size or number of threads; every rank's is the same.

        >>> loader = Loader(dataset, batch_size=4, shuffle="full", seed=7)
        >>> batch = next(iter(loader))
        >>> state = loader.state_dict()
        >>> state["epoch"], state["position"], state["samples"]
        (0, 4, 23)
        """
        state: dict[str, Any] = json.loads(self._open().state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state; the next `for` reads what is left of its epoch.

        >>> loader = Loader(dataset, batch_size=4, shuffle="full", seed=7)
        >>> batches = iter(loader)
        >>> _, (images, _) = next(batches), next(batches)
        >>> again = Loader(dataset, batch_size=2)
        >>> again.load_state_dict(loader.state_dict() | {"position": 4})
        >>> bool((next(iter(again))[0] == images[:2]).all())
        True
        """
        if not isinstance(state, Mapping):
            raise InvalidArgument(f"a loader state is what state_dict() returns, not {state!r}")
        try:
            text = json.dumps(dict(state))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"not a loader state: {error}") from None
        self._open().resume(text)
        self._shuffled = state["shuffle"] != "none"
        self._iteration = None
        self._resumed = True

    def stats(self) -> dict[str, Any]:
        """Who waited for whom, in seconds; `stats()["bottleneck"]` says in a sentence what limits the speed."""
        return self._open().stats()

    def close(self) -> None:
        """Ends the loader's threads. Batches that are held stay as they are."""
        self._native = None

    def __repr__(self) -> str:
        try:
            where = f"epoch {self.epoch}"
        except InvalidArgument as error:  # closed, or forked
            where = error.message
        kind = type(self)
        return f"<{kind.__module__}.{kind.__qualname__}: {self._batches}, {self._spec.text}, {where}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _open(self) -> AnyLoader:
        if self._native is None:
            raise InvalidArgument("the loader is closed")
        return self._native
