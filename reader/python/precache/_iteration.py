# SPDX-License-Identifier: Apache-2.0
"""The object that a `for` over a loader reads, and the one that stands for the sampler of a DataLoader."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._dataset import Array
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._loader import Loader


class Sampler:
    """The order of a loader, with the methods that training loops call on the sampler of a DataLoader."""

    def __init__(self, loader: Loader):
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        """The same as `set_epoch` of the loader."""
        self._loader.set_epoch(epoch)

    def __len__(self) -> int:
        """Samples of this rank in an epoch."""
        return self._loader._rank_samples()

    def __iter__(self) -> Iterator[int]:
        """The indices of this rank's samples, in the stored order."""
        loader, samples = self._loader, len(self._loader.dataset)
        if loader._shuffled:
            raise InvalidArgument(
                "the sampler of a shuffled loader does not list samples", hint="Iterate the loader itself."
            )
        mine = len(self)  # it asks for the rank
        rank, world_size = loader._place
        steps, of_last_step = divmod(mine, loader.batch_size)
        for step in range(steps):
            first = (step * world_size + rank) * loader.batch_size
            yield from (i % samples for i in range(first, first + loader.batch_size))
        left = samples % (loader.batch_size * world_size)
        more = min(rank, left % world_size) if loader.last_batch == "keep" else rank * (left % world_size > 0)
        first = samples - left + rank * (left // world_size) + more
        yield from (i % samples for i in range(first, first + of_last_step))


class Iteration(Iterator[tuple[Array, Array]]):
    """The batches of an epoch. A generator would keep each batch, and the threads of a closed loader, until the next one."""

    def __init__(self, loader: Loader, name: object):
        self._loader: Loader | None = loader
        self._name = name  # identifies it to the loader without a reference cycle
        self._turn = threading.RLock()

    def __next__(self) -> tuple[Array, Array]:
        with self._turn:  # threads may share it: none gets a batch of the next epoch when another reaches the end
            arrays: tuple[Array, Array] | None = self._loader._next(self._name) if self._loader is not None else None
            if arrays is None:
                self._loader = None
                raise StopIteration
            return arrays
