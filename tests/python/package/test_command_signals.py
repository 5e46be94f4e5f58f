# SPDX-License-Identifier: Apache-2.0
"""The command that a Python function runs, when it is interrupted or killed."""

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

import images
import precache
from conftest import TIMEOUT_SECONDS
from tool import Gate, Tool, differing, files, finish, wait_until

pytest_plugins = ("tool_fixtures",)

# One worker reads the images by name into six shards of two: the fifth image is held when two shards are complete.
OPTIONS = {"size": 16, "shards": 6, "shuffle": False, "jobs": 1}
FIFTH = "class0/04.png"
SCRIPT = """
import sys, threading
import precache

def call():
    precache.build(sys.argv[1], sys.argv[2], **eval(sys.argv[3]))

exec(sys.argv[4])
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(12):
        images.draw_unique(folder / f"class{number // 6}" / f"{number:02}.png", number)
    return folder


@pytest.fixture
def hold(interference, source, tmp_path):
    """Python in the middle of a build: yields its process, the command's process id and the gate."""

    @contextlib.contextmanager
    def hold_python(way="call()"):
        words = ("-c", SCRIPT, source, tmp_path / "out", repr(OPTIONS), way)
        with interference.hold(Tool(sys.executable), *words, path=FIFTH, start_new_session=True) as (process, gate):
            yield process, child_of(process.pid), gate

    return hold_python


def child_of(pid):
    children = [task.joinpath("children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    (child,) = (int(each) for each in sum(children, []))
    return child


def state(pid):
    """The fields of /proc/PID/status; empty for a process that has ended, including a zombie."""
    try:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {} if fields["State"].split()[0] == "Z" else fields


def is_ending(pid):
    """Whether the command has received the signal: its handler is removed after the first one."""
    return not int(state(pid)["SigCgt"], 16) & 1 << (signal.SIGTERM - 1)


def assert_resumes(source, out, shards=(2,)):
    """The same call resumes the interrupted one, and the bytes are those of an undisturbed build."""
    assert precache.build(source, out, **OPTIONS)["shards_resumed"] in shards
    precache.build(source, out.with_name("undisturbed"), **OPTIONS)
    assert differing(files(out), files(out.with_name("undisturbed"))) == []


@pytest.mark.parametrize("kill", [os.kill, os.killpg], ids=["alone", "with its process group, as a terminal does"])
def test_an_interrupted_build_can_be_resumed(hold, source, tmp_path, kill):
    with hold() as (process, child, gate):
        kill(process.pid, signal.SIGINT)
        wait_until(lambda: is_ending(child), process)
        gate.open()
        result = finish(process)
    assert state(child) == {}
    assert result.code == -signal.SIGINT
    assert (
        "KeyboardInterrupt\nprecache: interrupted\n  2 of 6 shards are complete; run the same command again"
        in result.err
    )
    assert_resumes(source, tmp_path / "out")


def test_a_second_interruption_kills_the_build(hold, source, tmp_path):
    with hold() as (process, child, _):  # the gate stays shut, so the command cannot end by itself
        process.send_signal(signal.SIGINT)
        wait_until(lambda: is_ending(child), process)
        process.send_signal(signal.SIGINT)
        assert finish(process).code == -signal.SIGINT
        assert state(child) == {}
    assert_resumes(source, tmp_path / "out", shards=range(3))  # the third shard may have been about to be published


def test_a_build_that_ignores_interruptions_continues(hold):
    """A program that handles the signal decides; the signal does not reach the command."""
    with hold("import signal; signal.signal(signal.SIGINT, lambda *_: print('heard', flush=True)); call()") as held:
        process, child, gate = held
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == b"heard\n"
        assert not is_ending(child)
        gate.open()
        assert finish(process).code == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize(
    "way", ["call()", "threading.Thread(target=call).start()"], ids=["main thread", "other thread"]
)
def test_the_command_ends_with_python(hold, source, tmp_path, number, way):
    with hold(way) as (process, child, gate):
        process.send_signal(number)
        assert process.wait(60) == -number
        wait_for(lambda: is_ending(child))
        gate.open()
        wait_for(lambda: state(child) == {})
    assert_resumes(source, tmp_path / "out")


def wait_for(condition):
    """Waits until the process has ended: its parent is gone and cannot be asked."""
    while not condition():
        threading.Event().wait(0.001)


def test_the_command_survives_the_end_of_another_thread(hold):
    way = """
threads = [threading.Thread(target=call), threading.Thread(target=print, args=["ended"], kwargs={"flush": True})]
for thread in threads: thread.start()
"""
    with hold(way) as (process, child, gate):
        assert process.stdout.readline() == b"ended\n"
        assert not is_ending(child)
        gate.open()
        assert finish(process).code == 0


def test_an_exception_in_the_progress_function_stops_the_build(hold, source, tmp_path):
    way = "precache.build(sys.argv[1], sys.argv[2], progress=lambda event: 1 // (event.done < 4), **eval(sys.argv[3]))"
    with hold(way) as (process, child, gate):
        wait_until(lambda: is_ending(child), process)
        gate.open()
        result = finish(process)
    assert result.code == 1 and "ZeroDivisionError" in result.err
    assert state(child) == {}
    assert_resumes(source, tmp_path / "out")


def test_an_interrupted_notebook_stops_the_build(interference, source, tmp_path):
    """Jupyter sends the signal to the process group of the kernel."""
    manager = pytest.importorskip("jupyter_client.manager", reason="needs ipykernel")
    pytest.importorskip("ipykernel")
    gate = Gate(tmp_path / "gate")
    env = interference.environment(calls="open", path=FIFTH, gate=gate.folder)
    kernel, client = manager.start_new_kernel(startup_timeout=TIMEOUT_SECONDS, env={**os.environ, **env})
    try:
        client.execute(f"import precache\nprecache.build({str(source)!r}, {str(tmp_path / 'out')!r}, **{OPTIONS!r})")
        wait_for(gate.is_reached)
        child = child_of(kernel.provisioner.pid)
        kernel.interrupt_kernel()
        wait_for(lambda: is_ending(child))
        gate.open()
        reply = client.get_shell_msg(timeout=TIMEOUT_SECONDS)["content"]
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    assert state(child) == {}
    assert_resumes(source, tmp_path / "out")
