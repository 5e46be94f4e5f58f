# SPDX-License-Identifier: Apache-2.0
"""A simulated GPU and a consumer of DLPack tensors on it. Calls go to the fake CUDA runtime that the module under test is
linked with."""

import contextlib
import ctypes
import importlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(os.environ["PRECACHE_FAKE_GPU"])  # the folder of the module under test

NON_BLOCKING, DEVICE_TO_HOST = 1, 2
KINDS = {(0, 64): "int64", (1, 8): "uint8", (2, 16): "float16", (2, 32): "float32", (4, 16): "bfloat16"}


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Unversioned(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
    name = b"dltensor"


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip
    name = b"dltensor_versioned"


# Torch may have loaded the real CUDA runtime with global symbols: these look into their own libraries first.
_MODE, _usual_mode = os.RTLD_NOW | os.RTLD_DEEPBIND, sys.getdlopenflags()
sys.setdlopenflags(_MODE)
importlib.import_module("precache._reader")
sys.setdlopenflags(_usual_mode)
machine = ctypes.CDLL(str(FOLDER / "machine.so"), _MODE)  # loads the fake runtime, too
machine.machine_report.restype = ctypes.c_char_p
for _order in (machine.machine_hold, machine.machine_let_go):
    _order.argtypes, _order.restype = [ctypes.c_void_p], None
machine.machine_fail.argtypes = [ctypes.c_char_p, ctypes.c_uint64]

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes, _get_pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes, _set_name.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.argtypes, _get_name.restype = [ctypes.py_object], ctypes.c_char_p


def cuda(call, *arguments):
    """Calls the CUDA runtime, by the name of the function."""
    error = getattr(machine, call)(*arguments)
    assert error == 0, f"{call}: error {error}"


def report():
    """Violated rules of CUDA and leaked resources; "" for none."""
    return machine.machine_report().decode()


@contextlib.contextmanager
def fresh_machine(devices=1):
    """A clean machine; at the end it must have no leaks and no violated rules."""
    machine.machine_start(devices)
    yield machine
    said = report()
    assert said == "", said


class Stream:
    """A consumer's stream, and an event to order it by."""

    def __init__(self):
        self.handle, self._event = ctypes.c_void_p(), ctypes.c_void_p()
        cuda("cudaStreamCreateWithFlags", ctypes.byref(self.handle), NON_BLOCKING)
        cuda("cudaEventCreateWithFlags", ctypes.byref(self._event), 2)

    def wait_stream(self, other):
        cuda("cudaEventRecord", self._event, other.handle)
        cuda("cudaStreamWaitEvent", self.handle, self._event, 0)

    def synchronize(self):
        cuda("cudaStreamSynchronize", self.handle)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.synchronize()
        cuda("cudaStreamDestroy", self.handle)
        cuda("cudaEventDestroy", self._event)


class Facts(NamedTuple):
    """The description that a tensor gives of itself."""

    device: tuple[int, int]
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Taken:
    """A tensor out of a capsule, held until drop()."""

    def __init__(self, capsule, kind):
        assert _get_name(capsule) == kind.name
        self._address = _get_pointer(capsule, kind.name)
        assert _set_name(capsule, b"used_" + kind.name) == 0
        self._kind = kind
        managed = self._managed()
        tensor = managed.tensor
        assert tensor.lanes == 1 and tensor.byte_offset == 0 and tensor.data % 256 == 0
        assert kind is Unversioned or (managed.major, managed.flags) == (1, 0)
        axes = range(tensor.ndim)
        self.facts = Facts(
            (tensor.device_type, tensor.device_id), KINDS[tensor.code, tensor.bits],
            tuple(tensor.shape[i] for i in axes), tuple(tensor.strides[i] for i in axes),
        )  # fmt: skip
        self._data, self._size = tensor.data, tensor.bits // 8 * int(np.prod(self.facts.shape, dtype=np.int64))

    def _managed(self):
        return self._kind.from_address(self._address)

    def copy_on(self, stream):
        """Queues a copy of the bytes to the host on a stream, without waiting for it."""
        return Copy(self._data, self._size, stream)

    def drop(self):
        """Releases the tensor, as the destructor of another library's tensor does."""
        self._managed().deleter(self._address)
        self._address = None


class Copy:
    """A copy from the device that is under way."""

    def __init__(self, data, size, stream):
        self._pinned, self._size, self._stream = ctypes.c_void_p(), size, stream
        cuda("cudaHostAlloc", ctypes.byref(self._pinned), ctypes.c_size_t(size), 0)
        cuda(
            "cudaMemcpyAsync", self._pinned, ctypes.c_void_p(data), ctypes.c_size_t(size), DEVICE_TO_HOST, stream.handle
        )

    def bytes(self):
        """Waits for the copy and returns the bytes."""
        self._stream.synchronize()
        bytes_ = ctypes.string_at(self._pinned, self._size)
        cuda("cudaFreeHost", self._pinned)
        return bytes_


def take(tensor, stream, *, versioned=True):
    """Takes a tensor by DLPack for a stream."""
    options = {"max_version": (1, 0)} if versioned else {}
    capsule = tensor.__dlpack__(stream=stream.handle.value, **options)
    return Taken(capsule, Versioned if versioned else Unversioned)
