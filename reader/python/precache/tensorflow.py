# SPDX-License-Identifier: Apache-2.0
"""Batches as a `tf.data.Dataset`.

>>> dataset = precache.tensorflow.dataset(folder, batch_size=4, shuffle="full", dtype="float32", layout="hwc")
>>> for images, labels in dataset:
...     pass  # your step
>>> images.shape, images.dtype
(TensorShape([4, 32, 32, 3]), tf.float32)
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

try:
    import tensorflow as tf
except ModuleNotFoundError as error:
    if error.name == "tensorflow":
        error.msg += "; precache.tensorflow needs it: pip install 'precache[tensorflow]'"
    raise

from . import _dataset, _options, _reader
from ._arrays import Column, Spec
from ._dataset import Array, PathLike
from ._errors import InvalidArgument
from ._loader import Loader

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11 on

    from ._keywords import LayoutOptions

__all__ = ["dataset"]


def dataset(
    source: _dataset.Dataset | PathLike | Sequence[PathLike],
    batch_size: int = 256,
    *,
    epoch: int = 0,
    **options: Unpack[LayoutOptions],
) -> tf.data.Dataset:
    """A `tf.data.Dataset` of (images, labels), or of dicts if there are `columns`. Each iteration over it is the next
    epoch.

    Args:
        source: A `precache.Dataset`, or a path that `precache.open` takes.
        batch_size: Samples in a batch of this rank.
        epoch: The first epoch, to resume training.
        rank, world_size: By default those of the environment variable TF_CONFIG, if it has several workers, or else as in
            `precache.Loader`. With several ranks, tf.distribute does not shard the dataset a second time.
        **options: All other options of `precache.Loader`. `writable` makes no difference: every batch is a copy.
    """
    if hooks := {"batch_transform", "as_dict"} & set(options):
        raise TypeError(f"precache.tensorflow.dataset has no {hooks.pop()}: use the map() of tf.data")
    opened = _dataset.opened(source, options.pop("split", None))

    if options.get("rank") is None and options.get("world_size") is None and (place := _worker_place()) is not None:
        options["rank"], options["world_size"] = place

    # DLPack needs writable memory without gaps between rows, so no batch may be a view of a shard.
    copied: LayoutOptions = {**options, "writable": True}

    def make_loader() -> Loader:
        return Loader(opened, batch_size, **copied)

    idle = [make_loader()]  # reports wrong options now, not at the first batch
    batches = len(idle[0])
    last_is_shorter = idle[0].last_batch in ("keep", "even") and len(idle[0].sampler) != batches * batch_size
    rows = None if last_is_shorter else batch_size
    epochs = itertools.count(_options.count("epoch", epoch))
    passing: dict[int, Any] = {}
    native = cast(_reader.Loader, idle[0]._open())
    specs = [Spec(*native.view_spec(view)) for view in range(len(idle[0]._pixels.lists))]
    columns = [Column(*column) for column in native.columns]
    del native  # or its threads would outlive close()
    column_names = [column.name for column in columns]
    types = [*(spec.dtype for spec in specs), tf.int64, *(column.dtype for column in columns)]
    shapes = [(rows, *(spec.shape if options.get("size") is None else _any_size(spec))) for spec in specs]
    shapes += [(rows,), *((rows, *_column_shape(column, options.get("size") is not None)) for column in columns)]
    has_views = idle[0]._pixels.has_views

    def numbers() -> Iterator[int]:
        loader = idle.pop() if idle else make_loader()
        loader.set_epoch(next(epochs))
        try:
            for batch in loader:
                passing[id(batch)] = batch
                yield id(batch)
        except BaseException:  # including an iteration that is left early
            loader.close()
            raise
        idle.append(loader)  # the next epoch reuses its buffers and page tables

    def take(number: tf.Tensor) -> list[Any]:
        batch = passing.pop(int(number))
        images, *others = (batch[name] for name in ("image", "label", *column_names)) if columns else batch
        views = images if has_views else (images,)
        return [*(_tensor(view, spec) for view, spec in zip(views, specs, strict=True)), *others]

    def fetch(number: tf.Tensor) -> Any:
        tensors = [*map(tf.ensure_shape, tf.py_function(take, [number], types), shapes)]
        images = tuple(tensors[: len(specs)]) if has_views else tensors[0]
        others = tensors[len(specs) :]
        return (
            dict(zip(("image", "label", *column_names), (images, *others), strict=True))
            if columns
            else (images, *others)
        )

    # tf.data copies the arrays of a generator several times. So this one yields numbers, and batches pass by DLPack.
    made = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int64)).map(fetch)
    made = made.apply(tf.data.experimental.assert_cardinality(batches)).prefetch(1)
    if idle[0]._place[1] == 1:
        return made
    mine = tf.data.Options()
    mine.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return made.with_options(mine)


def _worker_place() -> tuple[int, int] | None:
    """Number of this worker and of all workers, if TF_CONFIG has several that train on slices of the data."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text) if text else {}
        cluster, task = config.get("cluster", {}), config.get("task", {})
        chiefs, workers = len(cluster.get("chief", [])), len(cluster.get("worker", []))
        kind, index = task.get("type"), int(task.get("index", 0))
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f"the environment variable TF_CONFIG is not a cluster and a task: {error}",
            hint="Correct or unset it, or give rank and world_size.",
        ) from None
    if "ps" in cluster or kind not in ("chief", "worker") or chiefs + workers == 1:
        return None  # a parameter server's workers read what their coordinator tells them
    return index + (chiefs if kind == "worker" else 0), chiefs + workers


def _any_size(spec: Spec) -> tuple[int | None, ...]:
    """The shape of samples whose height and width change."""
    channels = spec.shape[0] if spec.layout == "chw" else spec.shape[2]
    return (channels, None, None) if spec.layout == "chw" else (None, None, channels)


def _column_shape(column: Column, changes_size: bool) -> tuple[int | None, ...]:
    """The shape of the values of a sample; masks change their size with the images."""
    return (None, None) if changes_size and len(column.shape) == 2 else column.shape


def _tensor(images: Array, spec: Spec) -> tf.Tensor:
    """The batch as a tensor; nothing is copied."""
    if spec.dtype == "bfloat16":  # numpy's DLPack does not support it: pass the bits as integers
        return tf.bitcast(_tensor(images.view(np.int16), spec._replace(dtype="int16")), tf.bfloat16)
    return tf.experimental.dlpack.from_dlpack(images.__dlpack__())
