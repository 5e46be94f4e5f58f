# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package, for errors of the C++ library and of the command.

Each is also a builtin exception: `except ValueError` catches InvalidArgument, and `except FileNotFoundError` an IoError
with that errno.
"""

from __future__ import annotations

import errno as errnos
import os
import re
import sys
from typing import Any


class Error(Exception):
    """Base of all errors of precache.

    Attributes:
        message: What happened, where and why; also str() of the error.
        hint: What to do next; may be empty. A traceback shows it below the message.
        path: The file concerned, or None.
        offset: The offset in that file, in bytes, or None.
    """

    def __init__(
        self, message: str, hint: str = "", path: str | None = None, offset: int | None = None, errno: int | None = None
    ):
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path
        self.offset = offset
        if sys.version_info >= (3, 11) and hint:
            self.add_note(hint)

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if sys.version_info < (3, 11) and self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Lets errors be pickled, to pass from one process to another."""
        arguments = (self.message, self.hint, self.path, self.offset, getattr(self, "errno", None))
        return make_error, (self._type_name(), *arguments), self.__dict__

    @classmethod
    def _type_name(cls) -> str:
        return next(name for name, kind in _TYPES.items() if issubclass(cls, kind))


class InvalidArgument(Error, ValueError):
    """An argument is wrong, or the call is not possible in this state."""


class IoError(Error, OSError):
    """The system refused. `errno` and `filename` are set as in any OSError."""

    def __init__(
        self, message: str, hint: str = "", path: str | None = None, offset: int | None = None, errno: int | None = None
    ):
        super().__init__(message, hint, path, offset)
        self.errno, self.filename, self.strerror = errno, path, os.strerror(errno) if errno else message


class CorruptDataError(Error):
    """The bytes at `offset` of `path` violate their format."""


class Unsupported(Error, NotImplementedError):
    """Valid, but not supported by this build or version."""


class DeviceError(Error, RuntimeError):
    """A CUDA call failed."""


class TooManyBadImages(Error):
    """More images were bad than `max_bad` allows, or one with `on_error="fail"`.

    Attributes:
        report: The report that `build` would have returned.
    """

    report: dict[str, Any]


class OutOfMemory(Error, MemoryError):
    """The command ran out of memory."""


# By their names in the C++ library and in the command's events; the base class last.
_TYPES: dict[str, type[Error]] = {
    "InvalidArgument": InvalidArgument,
    "IoError": IoError,
    "CorruptData": CorruptDataError,
    "Unsupported": Unsupported,
    "DeviceError": DeviceError,
    "TooManyBadImages": TooManyBadImages,
    "OutOfMemory": OutOfMemory,
    "Error": Error,
}


def _io_error(builtin: type[OSError]) -> type[IoError]:
    """An IoError that is also a FileNotFoundError, a PermissionError or another builtin kind of OSError."""
    return type(f"Io{builtin.__name__}", (IoError, builtin), {"__doc__": IoError.__doc__, "__module__": __name__})


_IO_ERRORS = {kind: _io_error(kind) for kind in {type(OSError(code, "")) for code in errnos.errorcode} - {OSError}}
# Pickle finds them by these names. Torch sends the types of its workers' errors, and would wait forever if it could not.
globals().update({kind.__name__: kind for kind in _IO_ERRORS.values()})


# Fields of the C++ library whose argument has another name, or is positional.
_ARGUMENTS = {
    **dict.fromkeys(("source", "out", "path", "paths", "shards", "dataset"), ""),
    "helper": "PRECACHE_COMMAND",
    "max_bad_percent": "max_bad=",
    "pin_shards_up_to_bytes": "pin_shards_up_to=",
    "resident_up_to_bytes": "resident_up_to=",
    "shard_count": "shards=",
    "shard_size_bytes": "shard_size=",
    "short_keys": "keys=",
    "sidecars": "index=",
}


_SWITCHES = {
    "all",
    "drop_last",
    "dry_run",
    "finish",
    "overwrite",
    "pad_if_needed",
    "prepare",
    "status",
    "wait",
    "writable",
}


def name_arguments(text: str) -> str:
    """Replaces the field names in a message of the C++ library or of the command by those of Python's arguments.

    >>> name_arguments("`shard_size` must be at least 1 byte, got 0. `out` is full; set `overwrite`.")
    'shard_size= must be at least 1 byte, got 0. out is full; set overwrite=True.'
    """

    def argument(found: re.Match[str]) -> str:
        verb, field = found.groups()
        name = _ARGUMENTS.get(field, f"{field}=") or field
        return f"{verb or ''}{name}{'True' if verb and field in _SWITCHES else ''}"

    return re.sub(r"(\b[Ss]et (?=`\w+`(?! to\b)))?`([a-z][a-z0-9_]*)`", argument, text)


def make_error(
    type_name: str,
    message: str,
    hint: str = "",
    path: str | None = None,
    offset: int | None = None,
    errno: int | None = None,
) -> Error:
    """Makes the error whose type has this name in C++; an unknown name makes an `Error`.

    >>> error = make_error("IoError", "cannot open 'x': No such file or directory", "Look elsewhere.", "x", errno=2)
    >>> isinstance(error, IoError), isinstance(error, FileNotFoundError), error.filename, error.hint
    (True, True, 'x', 'Look elsewhere.')
    """
    kind = _TYPES.get(type_name, Error)
    if kind is IoError and errno:
        kind = _IO_ERRORS.get(type(OSError(errno, "")), IoError)
    return kind(name_arguments(message), name_arguments(hint), path, offset, errno)
