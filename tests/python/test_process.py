# SPDX-License-Identifier: Apache-2.0
"""Limits of the process: memory, threads, the size of files, and readers of events that do not read."""

import errno
import fcntl
import json
import os
import resource
import shutil
import subprocess

import pytest

import images
from shards import FORMATS
from tool import UNPRIVILEGED_ID, differing, files, finish, ordinary_user

pytest_plugins = ("tool_fixtures",)

OPTIONS = ("--size", "16", "--shards", "3", "--jobs", "2")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(12):
        images.draw_unique(folder / f"class{number % 3}" / f"{number:02}.png", number)
    return folder


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("--help",), ("build",)], ids=lambda words: words[0])
def test_a_lack_of_memory_is_told_at_any_point(tool, interference, source, tmp_path, words):
    if tool.is_sanitized():
        pytest.skip("the sanitizer replaces malloc")
    if words[0] == "build":
        words = ("build", source, tmp_path / "out", "--quiet", *OPTIONS)
    told = 0
    for allocations in range(200, 4000, 190):  # there are some 100 before main() begins
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        result = finish(tool.start(*words, env=interference.environment(malloc_after=allocations)))
        assert result.code in (0, 3), f"after {allocations} allocations: {result}"
        if result.code == 3:
            assert result.err.startswith("precache: ") and "memory" in result.err.splitlines()[0]
            told += 1
    assert told > 10


def test_a_lack_of_memory_is_heard_of(tool, interference, source, tmp_path):
    if tool.is_sanitized():
        pytest.skip("the sanitizer replaces malloc")
    heard = []
    for allocations in range(3000, 30000, 900):  # by then the command line has been read
        reading, writing = os.pipe()
        with open(reading) as events:
            words = ("--events", str(writing), "build", source, tmp_path / str(allocations), *OPTIONS)
            env = interference.environment(malloc_after=allocations)
            process = tool.start(*words, env=env, pass_fds=[writing])
            os.close(writing)
            heard += [json.loads(line) for line in events]
        assert finish(process).code in (0, 3)
    assert {
        "event": "error",
        "type": "OutOfMemory",
        "message": "out of memory",
        "hint": "Use fewer --jobs, or a lower --max-pixels.",
    } in heard


# --- threads ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_threads(tool, source, public_folder):
    """few_threads(limit, arguments...): runs the tool as a user who may have so many threads."""
    shutil.copytree(source, public_folder / "source")
    os.chmod(public_folder / "source", 0o755)
    os.chown(public_folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
    shutil.copy(tool.path, public_folder / "precache")

    def run(limit, *arguments):
        def lower():
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))

        words = (*ordinary_user(), public_folder / "precache", *arguments)
        return finish(type(tool)(words[0]).start(*words[1:], cwd=public_folder, preexec_fn=lower))

    if os.geteuid() != 0:
        pytest.skip("needs a user without other processes, so needs root")
    return run


@pytest.mark.parametrize("limit", [2, 4, 6])
def test_a_limit_on_threads_is_named(few_threads, public_folder, limit):
    result = few_threads(limit, "build", "source", "out", "--quiet", "--size", "16", "--jobs", "8")
    assert result.code == 3, result
    assert result.err == (
        f"precache: cannot start a thread: {os.strerror(errno.EAGAIN)}\n"
        "  Use fewer --jobs, or raise the limit on processes (ulimit -u, or pids.max of the cgroup).\n"
    )
    assert not (public_folder / "out").exists()


def test_fewer_jobs_need_fewer_threads(few_threads, public_folder):
    for command in (("build", "source", "out", "--size", "16"), ("convert", "out", "new"), ("index", "out")):
        result = few_threads(4, *command, "--jobs", "2")
        assert result.code == 0, result


# --- sizes of files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_limit_on_the_size_of_files_is_named(tool, source, tmp_path, file_format):
    options = (*OPTIONS, "--format", file_format)
    tool.build(source, tmp_path / "undisturbed", *options)

    def lower():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    out = tmp_path / "out"
    text = tool.refuse(source, out, *options, expect=3, preexec_fn=lower)
    assert os.strerror(errno.EFBIG) in text and str(out) in text
    tool.build(source, out, *options)
    assert differing(files(out), files(tmp_path / "undisturbed")) == []


# --- readers of events ------------------------------------------------------------------------------------------------


def fill(pipe):
    """Leaves no room in the pipe."""
    flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
    os.set_blocking(pipe, False)
    size = 0
    try:
        while True:
            size += os.write(pipe, b"\n" * 4096)
    except BlockingIOError:
        pass
    fcntl.fcntl(pipe, fcntl.F_SETFL, flags)
    return size


def test_a_reader_of_events_that_does_not_read_does_not_hold_up_an_error(tool):
    reading, writing = os.pipe()
    try:
        fill(writing)
        result = finish(tool.start("--events", str(writing), "verify", "nowhere", pass_fds=[writing]))
    finally:
        os.close(reading)
        os.close(writing)
    assert result.code == 3 and "nowhere" in result.err


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "non-blocking"])
def test_a_slow_reader_of_events_gets_all_of_a_long_error(tool, blocking):
    reading, writing = os.pipe()
    size = fill(writing)
    os.set_blocking(writing, blocking)
    name = "x" * 100_000  # more than the pipe holds
    process = tool.start("--events", str(writing), "verify", name, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    with open(reading, "rb", buffering=0) as events:
        while size > 0:
            size -= len(events.read(min(size, 4096)))
        event = json.loads(events.readlines()[-1])
    assert finish(process).code == 3
    assert event["path"] == name and event["errno"] == errno.ENAMETOOLONG
