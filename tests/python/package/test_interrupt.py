# SPDX-License-Identifier: Apache-2.0
"""A loader that waits for its threads, which ptrace has stopped: Ctrl-C, and other Python threads."""

import contextlib
import ctypes
import os
import platform
import select
import signal
import subprocess
import sys
import textwrap

import pytest

from conftest import TIMEOUT_SECONDS
from package_fixtures import MODULES
from resources import comes_true

pytest_plugins = ("package_fixtures",)

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
FUTEX = "202" if platform.machine() == "x86_64" else "98"
WALL = 0x40000000  # __WALL: includes threads of another process

PROGRAM = """
    import sys
    import precache
    from precache import _reader

    class DeviceLoader(precache.Loader):
        def _make_native(self, options):
            path = {"path": "staged", "pin_shards_up_to": 0, "resident_up_to": 0}
            return _reader.DeviceLoader(self.dataset._native, options, device=0, device_batches=2, **path)

        def _arrays(self, batch):
            return batch, batch

    kind = DeviceLoader if sys.argv[2] == "fake_cuda" else precache.Loader
    loader = kind(sys.argv[1], 4, shuffle="full", threads=2)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        while True:
            for batch in loader:
                pass
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    sys.stdin.readline()
    print(len(next(iter(loader))[1]), flush=True)
"""


# The first thread ends a loader; the other one prints a line on request.
ENDING = """
    import sys, threading
    import precache

    def answer():
        sys.stdin.readline()
        print("alive", flush=True)

    loader = precache.Loader(sys.argv[1], 4, shuffle="full", threads=2)
    print("ready", flush=True)
    sys.stdin.readline()
    other = threading.Thread(target=answer)
    other.start()
    if sys.argv[2] == "close":
        loader.close()
    else:
        del loader
    other.join()
    print("ended", flush=True)
"""


def ptrace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def threads_called(name, process):
    folder = f"/proc/{process}/task"
    named = {}
    for number in os.listdir(folder):
        with open(f"{folder}/{number}/comm") as file:
            named[int(number)] = file.read().strip()
    return [number for number, comm in named.items() if comm == name]


def waits(process, thread=None):
    """Whether a thread of the process, by default the first, is asleep in a futex."""
    task = f"/proc/{process}/task/{thread or process}"
    with open(f"{task}/stat") as stat, open(f"{task}/syscall") as call:
        return stat.read().rsplit(")", 1)[1].split()[0] == "S" and call.read().split()[0] == FUTEX


@contextlib.contextmanager
def stopped_workers(process):
    """Stops the two threads of the process's loader."""
    assert comes_true(lambda: len(threads_called("precache", process)) == 2)
    workers = threads_called("precache", process)
    # They have filled all they can and hold no lock that another thread could wait for.
    assert comes_true(lambda: all(waits(process, worker) for worker in workers))
    try:
        for worker in workers:
            ptrace(PTRACE_SEIZE, worker)
            ptrace(PTRACE_INTERRUPT, worker)
            assert os.waitpid(worker, WALL)[0] == worker
    except OSError as error:
        pytest.skip(f"threads cannot be stopped here: {error}")
    try:
        yield
    finally:
        for worker in workers:
            ptrace(PTRACE_DETACH, worker)


def says(child, line, why):
    assert select.select([child.stdout], [], [], TIMEOUT_SECONDS)[0], why
    assert child.stdout.readline() == line


@pytest.fixture(params=["", "fake_cuda"])
def child(request, stamps, package_with):
    module = request.param
    if module and not (MODULES / module).is_dir():
        pytest.skip("built without CUDA")
    words = [sys.executable, "-c", textwrap.dedent(PROGRAM), stamps.out, module]
    variables = os.environ | (package_with(module) if module else {})
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables) as process:
        yield process
        process.kill()


def test_a_waiting_loader_can_be_interrupted(child):
    assert child.stdout.readline() == "ready\n"
    with stopped_workers(child.pid):
        print("go", file=child.stdin, flush=True)
        assert comes_true(lambda: waits(child.pid))
        child.send_signal(signal.SIGINT)
        says(child, "interrupted\n", "the loader keeps waiting")
    # The loader is unchanged: no batch is lost.
    print("resume", file=child.stdin, flush=True)
    assert child.stdout.readline() in ("4\n", "3\n")
    child.stdin.close()
    assert child.wait(TIMEOUT_SECONDS) == 0


@pytest.mark.parametrize("end", ["close", "del"])
def test_other_threads_run_while_a_loader_ends(stamps, end):
    words = [sys.executable, "-c", textwrap.dedent(ENDING), stamps.out, end]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            with stopped_workers(child.pid):
                print("go", file=child.stdin, flush=True)
                assert comes_true(lambda: waits(child.pid))
                print("answer", file=child.stdin, flush=True)
                says(child, "alive\n", "the interpreter stands still")
            assert child.stdout.readline() == "ended\n"
            assert child.wait(TIMEOUT_SECONDS) == 0
        finally:
            child.kill()
