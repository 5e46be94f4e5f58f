# SPDX-License-Identifier: Apache-2.0
"""Has `fit`, `evaluate` and `predict` of Keras take a loader, in programs that import Keras."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._loader import Loader

MODULE = "keras.src.trainers.data_adapters"


def join(kind: type[Loader]) -> None:
    """Extends the function of Keras that chooses how to read its input."""
    adapters: Any = sys.modules[MODULE]
    original = getattr(adapters, "get_data_adapter", None)
    if original is None or hasattr(original, "_knows_precache"):  # Keras before 3.6 has none
        return

    @functools.wraps(original)
    def get_data_adapter(x: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(x, kind):
            return original(x, *arguments, **options)
        if given := [name for name in ("y", "sample_weight", "class_weight") if options.get(name) is not None]:
            raise InvalidArgument(
                f"{given[0]} cannot be combined with a loader", hint="Return more values with batch_transform=."
            )
        return _adapter(adapters, x)

    get_data_adapter._knows_precache = True  # type: ignore[attr-defined]
    adapters.get_data_adapter = get_data_adapter


def _adapter(adapters: Any, loader: Loader) -> Any:
    base: Any = adapters.data_adapter.DataAdapter
    facts = {
        "num_batches": len(loader),
        "batch_size": loader.batch_size,
    }  # properties of the base, which has no setters
    return type("LoaderAdapter", (_LoaderAdapter, base), facts)(loader)


class _LoaderAdapter:
    """The methods of a DataAdapter of Keras, for each of its backends."""

    has_partial_batch = partial_batch_size = None

    def __init__(self, loader: Loader):
        self._loader = loader
        self._begin: dict[str, Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        """The next epoch. One that Keras has left, as after a first batch that showed it the shapes, begins again."""
        loader = self._loader
        if self._begin is not None and loader._was_read and loader._open().batches_left:
            loader.load_state_dict(self._begin)
        batches = iter(loader)
        self._begin = loader.state_dict()
        return batches

    def get_numpy_iterator(self) -> Iterator[Any]:
        return (_of_arrays(np.asarray, batch) for batch in self)

    get_jax_iterator = get_numpy_iterator

    def get_torch_dataloader(self) -> Iterator[Any]:
        import torch

        return (_of_arrays(torch.as_tensor, batch) for batch in self)

    def get_tf_dataset(self) -> Any:
        import tensorflow as tf

        def spec_of(array: Any) -> Any:
            return tf.TensorSpec((None, *array.shape[1:]), array.dtype)

        first = next(self.get_numpy_iterator())
        return tf.data.Dataset.from_generator(self.get_numpy_iterator, output_signature=_of_arrays(spec_of, first))


def _of_arrays(function: Any, batch: Any) -> Any:
    """The batch with the function applied to each of its arrays."""
    if isinstance(batch, dict):
        return {name: _of_arrays(function, value) for name, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return tuple(_of_arrays(function, value) for value in batch)
    return function(batch)
