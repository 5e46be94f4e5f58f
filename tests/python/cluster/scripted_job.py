# SPDX-License-Identifier: Apache-2.0
"""A job whose first attempt at some parts fails, in a way that a test chooses. Processes of engines import this."""

import contextlib
import os
import signal
import time
from pathlib import Path

from precache.cluster import Job
from precache import InvalidArgument, IoError

PATIENCE_SECONDS = 200  # ends a test that hangs; none depends on how long something takes


class ScriptedJob(Job):
    """`script` maps the numbers of parts to what their first attempt does; `folder` has a file for each attempt."""

    def __init__(self, source, out, folder, script, **options):
        super().__init__(source, out, **options)
        self.folder, self.script = Path(folder), script
        self.folder.mkdir()

    def attempts(self, part):
        return len(list(self.folder.glob(f"part{part}-*")))

    def run(self, part):
        is_first = self.attempts(part) == 0
        (self.folder / f"part{part}-{os.getpid()}-{time.monotonic_ns()}").touch()
        if not is_first or part not in self.script:
            result = super().run(part)
            (self.folder / f"done{part}").touch()
            return result
        what, *arguments = self.script[part].split()
        return getattr(self, what)(part, *arguments)

    def fail(self, part):
        raise IoError("cannot write 'x': No space left on device", errno=28)

    def refuse(self, part):
        raise InvalidArgument("an argument is wrong")

    def lose(self, part, program):
        """Makes the shards, then kills the program above this process, and so the engine never learns of them."""
        super().run(part)
        kill_above(program)
        os.kill(os.getpid(), signal.SIGKILL)  # a lost machine takes all its processes with it

    def wait(self, part):
        """Starts only when another attempt at the same part is done."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (self.folder / f"done{part}").exists() and time.monotonic() < end:
            time.sleep(0.05)
        return super().run(part)


def kill_above(program):
    """Kills the nearest process above this one that runs the program."""
    process = os.getpid()
    while process > 1:
        name, parent = describe(process)
        if name == program:
            os.kill(process, signal.SIGKILL)
            return
        process = parent
    raise AssertionError(f"no {program} is above this process")


def describe(process):
    with contextlib.suppress(FileNotFoundError):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        return status["Name"].strip(), int(status["PPid"])
    return "", 0
