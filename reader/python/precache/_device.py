# SPDX-License-Identifier: Apache-2.0
"""Batches in the memory of a GPU, for libraries that take tensors by DLPack."""

from __future__ import annotations

from typing import Any

from . import _reader
from ._errors import InvalidArgument

_CUDA = 2  # kDLCUDA
_LEGACY_STREAM, _STREAM_OF_THREAD = 1, 2


class DeviceTensor:
    """The images or the labels of a batch on a GPU.

    Whoever takes it by DLPack says on which stream. That stream waits for the data; and the memory is used again,
    when the last tensor of the batch is gone, after what that stream has to do then.
    """

    def __init__(self, batch: _reader.DeviceBatch, *, labels: bool):
        self._batch = batch
        self._labels = labels

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
        """A capsule, as the array API of Python lays it down.

        Args:
            stream: None or 1 for the legacy default stream, else a cudaStream_t.
            max_version: from (1, 0) on, the capsule has a version.
            dl_device: may be where it is, and nothing else.
            copy: is never made.
        """
        if copy:
            raise BufferError("a batch on a GPU is handed over as it is, not copied")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"a batch on device {self.__dlpack_device__()} cannot be exported to {tuple(dl_device)}")
        if stream in (-1, _STREAM_OF_THREAD):
            # Whichever thread lets go of the memory, it must be clear what that may still be used by.
            raise BufferError(f"a batch on a GPU is handed over on one stream, which {stream} is not")
        if stream is not None and stream < 1:
            raise InvalidArgument(f"stream is {stream}", hint="It can be None, 1 or a cudaStream_t.")
        versioned = max_version is not None and max_version[0] >= 1
        return self._batch.dlpack(self._labels, _LEGACY_STREAM if stream is None else stream, versioned)
