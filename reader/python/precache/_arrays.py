# SPDX-License-Identifier: Apache-2.0
"""Describes tensors, and turns bytes into numpy arrays of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._errors import Unsupported


class Spec(NamedTuple):
    """dtype, layout and shape of every sample of a dataset, or of every row of a loader's batches.

    >>> Spec("uint8", "chw", (3, 224, 224)).nbytes
    150528
    """

    dtype: str
    """"uint8", "float16", "bfloat16" or "float32"."""
    layout: str
    """"chw" or "hwc": the order of the axes."""
    shape: tuple[int, int, int]

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The numpy type of the elements. bfloat16 needs the package `ml_dtypes`."""
        if self.dtype != "bfloat16":
            return np.dtype(self.dtype)
        try:
            import ml_dtypes
        except ImportError:
            raise Unsupported(
                "numpy needs the package ml_dtypes for bfloat16, which is not installed",
                hint="Run `pip install ml_dtypes`, use precache.torch, or ask the loader for another dtype.",
            ) from None
        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16

    @property
    def nbytes(self) -> int:
        """Bytes of one tensor."""
        itemsize = 2 if self.dtype == "bfloat16" else np.dtype(self.dtype).itemsize
        return int(np.prod(self.shape, dtype=np.int64)) * itemsize

    @property
    def text(self) -> str:
        """As text: "uint8 3x224x224 chw"."""
        return f"{self.dtype} {'x'.join(map(str, self.shape))} {self.layout}"


class Column(NamedTuple):
    """Describes a named column: values that each sample has next to its image and label.

    >>> Column("age", "float32", ()).numpy_dtype
    dtype('float32')
    """

    name: str
    dtype: str
    """"uint8", "int32", "int64" or "float32"."""
    shape: tuple[int, ...]
    """Of one sample: () is one value, (k,) a list, (height, width) a mask."""
    value_names: tuple[str, ...] = ()
    """Of a list that has a 1 for each class of the sample: the names of these classes."""

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The numpy type of the values."""
        return np.dtype(self.dtype)


def as_tensors(rows: np.ndarray[Any, Any], spec: Spec) -> np.ndarray[Any, Any]:
    """Views rows of bytes, one for each tensor, as tensors; nothing is copied."""
    return rows.view(spec.numpy_dtype).reshape(len(rows), *spec.shape)


def size_of(spec: Spec) -> tuple[int, int]:
    """Height and width of the tensors."""
    height, width = spec.shape[1:] if spec.layout == "chw" else spec.shape[:2]
    return height, width
