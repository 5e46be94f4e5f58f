# SPDX-License-Identifier: Apache-2.0
"""A terminal to run programs on, which keeps their output."""

import os
import pty
import re
import select
import termios
import time

import pytest


def read_until(descriptor, pattern):
    """Reads until the pattern appears; returns the text. The test's time limit ends a tool that never writes it."""
    text, end = "", time.monotonic() + 60
    while not re.search(pattern, text):
        assert time.monotonic() < end, f"no {pattern!r} in {text!r}"
        if select.select([descriptor], [], [], 1)[0]:
            text += os.read(descriptor, 4096).decode()
    return text


class Terminal:
    def __init__(self, columns):
        self.columns = columns

    def __enter__(self):
        try:
            self.ours, self.theirs = pty.openpty()
        except OSError as error:
            pytest.skip(f"no terminal to be had: {error}")
        termios.tcsetwinsize(self.theirs, (24, self.columns))
        return self

    def __exit__(self, *_):
        os.close(self.theirs)
        self.hang_up()

    def hang_up(self):
        """Closes the terminal: later writes fail."""
        if self.ours is not None:
            os.close(self.ours)
        self.ours = None

    def rest(self):
        """Returns the output that was not read yet."""
        text = b""
        while select.select([self.ours], [], [], 0)[0]:
            text += os.read(self.ours, 4096)
        return text.decode()
