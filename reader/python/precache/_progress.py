# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a command: a bar on a terminal or in a notebook, lines in a log."""

from __future__ import annotations

import contextlib
import html
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Union

from . import _options


@dataclass(frozen=True)
class Progress:
    """Progress of a command. A function given as `progress` is called with it about five times a second."""

    share: float | None
    """The share that is done, from 0 to 1; None until it is known. The last call of a successful command has 1."""
    done: int
    planned: int
    unit: str
    """Unit of `done` and `planned`: images, samples or bytes."""
    text: str
    """The same as text, with speed and remaining time."""
    seconds: float
    """Seconds since the start."""


# True: a bar. None: a bar on a terminal or in a notebook, lines elsewhere. False: nothing at all.
ProgressOption = Union[bool, None, Callable[[Progress], Any]]


class Display(Protocol):
    def show(self, progress: Progress) -> None: ...

    def close(self) -> None: ...


class Nowhere:
    def show(self, progress: Progress) -> None:
        pass

    def close(self) -> None:
        pass


class Callback:
    def __init__(self, function: Callable[[Progress], Any]) -> None:
        self.show = function

    def close(self) -> None:
        pass


class TerminalBar:
    """One line of stderr, redrawn in place and erased at the end."""

    WIDTH = 12

    def show(self, progress: Progress) -> None:
        text = progress.text
        if progress.share is not None:
            filled = int(progress.share * self.WIDTH)
            text = f"[{'#' * filled}{'.' * (self.WIDTH - filled)}] {text}"
        columns = self._columns() - 1
        self._write(f"\r{text if len(text) <= columns else progress.text[:columns]}\x1b[K")

    def close(self) -> None:
        self._write("\r\x1b[K")

    @staticmethod
    def _columns() -> int:
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except Exception:  # no terminal, or no file at all
            return 80

    @staticmethod
    def _write(text: str) -> None:
        say(text, end="")


class LogLines:
    """A line of stderr every so often, for jobs whose output goes to a file. Short commands print none."""

    FIRST_SECONDS = 10.0
    EVERY_SECONDS = 60.0

    def __init__(self) -> None:
        self._due = self.FIRST_SECONDS
        self._has_said = False

    def show(self, progress: Progress) -> None:
        is_last = progress.share == 1 and self._has_said
        if progress.seconds >= self._due or is_last:
            say(f"precache: {progress.text}")
            self._has_said = not is_last
            self._due = progress.seconds + self.EVERY_SECONDS

    def close(self) -> None:
        pass


class NotebookBar:
    """An output of the cell, updated in place. Needs nothing but IPython."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, progress: Progress) -> None:
        display: Any = importlib.import_module("IPython.display").display
        # A mapping of MIME types: front ends without HTML show the text.
        data = {"text/plain": progress.text, "text/html": self._html(progress)}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def close(self) -> None:
        pass

    @staticmethod
    def _html(progress: Progress) -> str:
        value = "" if progress.share is None else f' value="{progress.share:.4f}"'
        return f'<progress max="1"{value} style="width: 16em"></progress> <code>{html.escape(progress.text)}</code>'


def say(text: str, end: str = "\n") -> None:
    """Writes to stderr, which a program may have replaced: output that cannot be shown must not end a command."""
    stream: Any = sys.stderr
    with contextlib.suppress(
        Exception
    ):  # stderr is None or closed, the disk is full, or the object has its own write()
        try:
            stream.write(text + end)
        except UnicodeEncodeError:  # an ASCII stream, for example; then nothing of the text was written
            stream.write((text + end).encode("ascii", "backslashreplace").decode("ascii"))
        stream.flush()


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except Exception:  # it has no such method, or is closed
        return False


def in_notebook() -> bool:
    """True in a notebook kernel; IPython in a terminal has no kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def make_display(option: ProgressOption) -> Display:
    if callable(option):
        return Callback(option)
    if option is not None and not _options.truth("progress", option):
        return Nowhere()
    if in_notebook():
        return NotebookBar()
    return TerminalBar() if option or _is_terminal(sys.stderr) else LogLines()
