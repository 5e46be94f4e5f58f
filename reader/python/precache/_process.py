# SPDX-License-Identifier: Apache-2.0
"""Runs the precache command, so that decoders and the HDF5 library cannot crash this process."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

from ._errors import Error, TooManyBadImages, make_error
from ._progress import Display, Progress, ProgressOption, make_display, say

_DAMAGED, _UNSUPPORTED = 4, 5  # exit codes of docs/cli.md

_HINT = "Reinstall the package, or set PRECACHE_COMMAND to the path of the command."


def expected_command() -> str:
    """The path where the precache command is expected."""
    folders = sys.modules[__package__].__path__  # more than one in an editable installation
    inside = [os.path.join(folder, "bin", "precache") for folder in folders]
    return next(filter(os.path.isfile, (*inside, os.environ.get("PRECACHE_COMMAND", ""))), inside[0])


def command_path() -> str:
    """The path of the precache command: in the package, or else the value of the environment variable PRECACHE_COMMAND."""
    path = expected_command()
    if not os.path.isfile(path):
        raise make_error("IoError", f"the precache command is not at '{path}'", _HINT, path, errno=errno.ENOENT)
    return path


def cannot_run(command: str, error: OSError) -> Error:
    """The error to raise if the system cannot run the command."""
    return make_error("IoError", f"cannot run '{command}': {error.strerror}", _HINT, command, errno=error.errno)


def run(words: Sequence[str], progress: ProgressOption = None, *, faults_are_results: bool = False) -> dict[str, Any]:
    """Runs the command and returns the JSON that it prints, or raises the error that it reports.

    Args:
        words: The subcommand and its arguments, including --json.
        faults_are_results: Return the report on data that are damaged or of an unknown kind, too.
    """
    with contextlib.closing(make_display(progress)) as display, _Child(words) as child:
        child.listen(display)
        report = child.report((0, _DAMAGED, _UNSUPPORTED) if faults_are_results else (0,))
        if child.last.share != 1:  # there was nothing to do, or the data are damaged
            display.show(dataclasses.replace(child.last, share=1.0))
        said = child.said()
    if said and not callable(progress) and (progress is None or progress):
        say(said)  # for example that samples were skipped
    return report


class _Child:
    """The running command.

    It runs in its own session: Ctrl-C in a terminal, and the interruption of a notebook, go to whole process groups and
    would reach the command in addition to the signal that stop() sends, and a second signal kills it at once. With
    --parent it ends when this process is killed.

    Its output goes to files in memory, so that there is only one pipe to listen to.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._name = f"precache {words[0]}"
        self.last = Progress(None, 0, 0, "", "done", 0.0)
        self._error: dict[str, Any] = {}
        command = command_path()
        with contextlib.ExitStack() as files:
            self._out = files.enter_context(_memory_file())
            self._err = files.enter_context(_memory_file())
            reading, writing = os.pipe()
            self._events = files.enter_context(open(reading, "rb"))
            with open(writing, "wb"):
                self._process = self._start(command, writing, words)
            self._files = files.pop_all()

    def _start(self, command: str, events: int, words: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [command, "--events", str(events), "--parent", str(os.getpid()), *words],
                stdin=None if "-" in words else subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                pass_fds=[events],
                start_new_session=True,
            )
        except OSError as error:
            raise cannot_run(command, error) from None

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, _: Any, exception: BaseException | None, __: Any) -> None:
        with self._files:
            if self._process.returncode is None:
                self.stop()
                if sys.version_info >= (3, 11) and exception is not None and self.said():
                    exception.add_note(self.said())  # how to resume

    def listen(self, display: Display) -> None:
        """Shows the command's progress until it ends."""
        for line in self._events:
            event = json.loads(line)
            if event.pop("event") == "error":
                self._error = event
            else:
                self.last = Progress(**event)
                display.show(self.last)
        self._process.wait()

    def stop(self) -> None:
        """Stops the command so that the same call can resume it. A second interruption kills it at once."""
        # Not SIGINT: the child inherits it as ignored from background jobs and from threads of notebooks.
        self._process.terminate()
        try:
            self._process.wait()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def report(self, expected: Sequence[int]) -> dict[str, Any]:
        """The JSON that the command printed. Raises the error that it reported."""
        status = self._process.returncode
        if self._error:
            error = make_error(self._error.pop("type"), **self._error)
            if isinstance(error, TooManyBadImages):
                error.report = json.loads(_text(self._out))
            raise error
        if status < 0:
            why = "The system may have run out of memory." if status == -signal.SIGKILL else ""
            raise Error(f"{self._name} was killed by a signal: {signal.strsignal(-status)}", self.said() or why)
        if status not in expected:
            raise Error(f"{self._name} ended with status {status}", self.said())
        report: dict[str, Any] = json.loads(_text(self._out))
        return report

    def said(self) -> str:
        return _text(self._err).strip()


def _memory_file() -> BinaryIO:
    return open(os.memfd_create("precache"), "w+b", buffering=0)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
