# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of engines: the build that they run, and how to start and wait."""

import contextlib
import importlib.util
import os
import runpy
import shutil
import socket
import sys
import time

from conftest import REPOSITORY
from tool import miss

PATIENCE_SECONDS = 200  # ends a test that hangs; none depends on how long something takes
SAMPLES = REPOSITORY / "samples" / "cluster"
PARTS = 6
OPTIONS = {"size": 8, "shards": 12}
WORDS = ("--size", "8", "--shards", "12")


def need(*, programs=(), packages=()):
    """Skips the test if something is not installed. tests/run.sh installs all of it, and lets no test skip."""
    missing = [name for name in programs if shutil.which(name) is None]
    missing += [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        miss(f"not installed: {', '.join(missing)}")


def free_ports(count):
    """Ports that nothing listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def run_sample(monkeypatch, name, *words):
    """Runs a program of samples/cluster in this process, which is connected to an engine."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    runpy.run_path(str(SAMPLES / name), run_name="__main__")


def is_running(process):
    return os.path.exists(f"/proc/{process}")


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"it hangs: {what}"
        time.sleep(0.1)
