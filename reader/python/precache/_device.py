# SPDX-License-Identifier: Apache-2.0
"""Batches in the memory of a GPU, for libraries that take tensors by DLPack."""

from __future__ import annotations

from typing import Any

from . import _reader
from ._errors import InvalidArgument

_CUDA = 2  # kDLCUDA
_LEGACY_STREAM, _STREAM_OF_THREAD = 1, 2


class DeviceTensor:
    """The images of a view, or the labels, of a batch on a GPU.

    The consumer passes its stream when it takes the tensor by DLPack. That stream waits for the data. Once the last tensor
    of the batch is gone, the memory is reused after the work that is queued on that stream by then.
    """

    def __init__(self, batch: _reader.DeviceBatch, *, labels: bool, view: int = 0):
        self._batch = batch
        self._labels = labels
        self._view = view

    def __dlpack_device__(self) -> tuple[int, int]:
        """(kDLCUDA, the device's number)."""
        return _CUDA, self._batch.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule, as Python's array API specifies it.

        Args:
            stream: None or 1 for the legacy default stream, else a cudaStream_t.
            max_version: the capsule is versioned from (1, 0) on.
            dl_device: must be the device of the batch.
            copy: True is refused: batches are never copied.
        """
        if copy:
            raise BufferError("a batch on a GPU cannot be copied by DLPack")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"a batch on device {self.__dlpack_device__()} cannot be exported to {tuple(dl_device)}")
        if stream in (-1, _STREAM_OF_THREAD):
            # The memory may be released by another thread, whose per-thread stream is not the one that uses it.
            raise BufferError(f"a batch on a GPU needs one stream for all threads; stream {stream} is not one")
        if stream is not None and stream < 1:
            raise InvalidArgument(f"stream must be None, 1 or a cudaStream_t, got {stream}")
        versioned = max_version is not None and max_version[0] >= 1
        stream = _LEGACY_STREAM if stream is None else stream
        return self._batch.dlpack(self._labels, self._view, stream, versioned)
