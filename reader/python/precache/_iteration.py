# SPDX-License-Identifier: Apache-2.0
"""The object that a `for` over a loader reads, and the one that stands for the sampler of a DataLoader."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._dataset import Array

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
