# SPDX-License-Identifier: Apache-2.0
"""Runs the tool: with disturbed system calls, held at one of them, as another user, or with its memory measured."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import TIMEOUT_SECONDS

EXTENSIONS = {"tar": "tar", "tfrecord": "tfrecord", "hdf5": "h5"}
UNPRIVILEGED_ID = 65534


class Result(NamedTuple):
    code: int
    out: str
    err: str

    def json(self):
        return json.loads(self.out)


def miss(what):
    """Skips a test, or fails it where tests/run.sh has installed all that tests of clusters need."""
    (pytest.fail if os.environ.get("PRECACHE_NEED_CLUSTERS") else pytest.skip)(what)


def finish(process):
    """Waits for a started tool. The result holds only output that went to pipes."""
    out, err = (text or b"" for text in process.communicate(timeout=TIMEOUT_SECONDS))
    return Result(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def wait_until(condition, process):
    """Waits until a running tool meets the condition."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert process.poll() is None, f"it has ended: {finish(process)}"
        assert time.monotonic() < end, "it hangs"
        time.sleep(0.001)


class Tool:
    def __init__(self, path):
        self.path = path

    def start(self, *arguments, env=None, before=(), **options):
        """Adds `env` to the environment, and puts the words of `before` in front of the command."""
        words = [os.fsencode(word) for word in (*before, self.path, *arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(words, env={**os.environ, **(env or {})}, **{**pipes, **options})

    def run(self, *arguments, expect=0, **options):
        """`expect` is the exit code; None accepts any."""
        result = finish(self.start(*arguments, **options))
        said = f"{result.out}{result.err}"
        assert expect in (None, result.code), f"exit code {result.code}, not {expect}, of {arguments}\n{said}"
        return result

    def build(self, source, out, *arguments, **options):
        return self.run("build", source, out, "--quiet", *arguments, **options)

    def refuse(self, source, out, *arguments, expect=2, **options):
        """Runs a build that must fail, and returns its message, which must have the form of an error."""
        result = self.build(source, out, *arguments, expect=expect, **options)
        lines = result.err.splitlines()
        assert lines and lines[0].startswith("precache: "), result.err
        assert len(lines) <= 2 and all(line.startswith("  ") for line in lines[1:]), result.err
        assert result.out == ""
        return result.err

    def is_sanitized(self):
        return b"__asan_init" in self.path.read_bytes() or b"__tsan_init" in self.path.read_bytes()


# --- disturbed system calls -------------------------------------------------------------------------------------------


class Gate:
    """Holds a process at a system call."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def is_reached(self):
        return (self.folder / "reached").exists()

    def open(self):
        (self.folder / "open").touch()


class Interference:
    """Makes an environment that disturbs chosen calls of the tool."""

    def __init__(self, library, folder):
        self.library = library
        self.folder = folder
        self.gates = 0

    def environment(self, **settings):
        variables = {f"FAIL_IO_{name.upper()}": str(value) for name, value in settings.items()}
        sanitizer = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
        return {"LD_PRELOAD": str(self.library), "ASAN_OPTIONS": sanitizer, **variables}

    def fail(self, calls, code, **where):
        """The calls fail with the errno `code`."""
        return self.environment(calls=calls, errno=code, **where)

    def kill(self, calls, when="before", **where):
        """SIGKILL ends the process `before` the call, `after` it, or with `half` of its bytes written."""
        return self.environment(calls=calls, kill=when, **where)

    @contextlib.contextmanager
    def hold(self, tool, *arguments, calls="open", path="", **options):
        """Starts the tool, holds it at the first of the calls, and returns the process and the gate to open."""
        self.gates += 1
        gate = Gate(self.folder / f"gate{self.gates}")
        env = self.environment(calls=calls, path=path, gate=gate.folder)
        with tool.start(*arguments, env=env, **options) as process:
            try:
                wait_until(gate.is_reached, process)
                yield process, gate
            finally:
                process.kill()


def signal_once(process, number):
    """Sends a signal that has a one-shot handler, and waits until the handler ran: a second signal could be lost before."""

    def is_handled():
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = int(status.split("SigCgt:")[1].split()[0], 16)
        return not caught & 1 << (number - 1)

    process.send_signal(number)
    wait_until(is_handled, process)


# --- surroundings -----------------------------------------------------------------------------------------------------


def ordinary_user():
    """Words to put in front of a command that drop root's privileges."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv")
    return ("setpriv", f"--reuid={UNPRIVILEGED_ID}", f"--regid={UNPRIVILEGED_ID}", "--clear-groups", "--")


def run_and_measure(tool, *arguments):
    """The result and the largest resident size in bytes. A small process runs the tool, because the size
    of the process that starts a program would count as the program's."""
    measure = (
        "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    result = finish(tool.start(*arguments, before=(sys.executable, "-I", "-S", "-c", measure)))
    return result, int(result.err.splitlines()[-1]) * 1024


# --- folders ----------------------------------------------------------------------------------------------------------


def files(folder):
    """The bytes of all files in a folder and below, by their relative paths; None for folders."""
    paths = sorted(Path(folder).rglob("*"))
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in paths}


def snapshot(folder):
    """As files(), plus enough to notice that a file was rewritten with the same bytes."""
    times = {name: (Path(folder) / name).stat() for name, data in files(folder).items() if data is not None}
    return files(folder), {name: (status.st_ino, status.st_mtime_ns) for name, status in times.items()}


def differing(one, other):
    """The names of the files that differ, for readable assertions about many bytes."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name, 0) != other.get(name, 0))


def kill_after(process, seconds):
    """Kills the process unless it ends earlier; returns True if it was killed."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    finish(process)
    return process.returncode == -signal.SIGKILL
