# SPDX-License-Identifier: Apache-2.0
"""Options for programs that run the tool: --events and --parent."""

import contextlib
import fcntl
import json
import os
import signal
import time

import pytest

import images
from tool import differing, files, finish

pytest_plugins = ("tool_fixtures",)

COUNT = 20
HELD = ("--size", "16", "--jobs", "1", "--no-shuffle", "--quiet")  # held at the image that is the eleventh by name
ELEVENTH = "class2/02.png"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(COUNT):
        images.draw_unique(folder / f"class{number % 4}" / f"{number:02}.png", number)
    return folder


@pytest.fixture
def pipe():
    """Both ends, as descriptors; a test that closes one puts None in its place."""
    ends = list(os.pipe())
    yield ends
    for end in ends:
        if end is not None:
            os.close(end)


def listen(tool, *arguments, **options):
    """Runs the tool to its end; gives the result and its events."""
    reading, writing = os.pipe()
    with open(reading) as events:
        process = tool.start("--events", str(writing), *arguments, pass_fds=[writing], **options)
        os.close(writing)
        heard = [json.loads(line) for line in events]
    return finish(process), heard


def test_progress_is_heard_though_it_is_not_shown(tool, interference, source, tmp_path, pipe):
    reading, writing = pipe
    command = ("--events", str(writing), "build", source, tmp_path / "out", *HELD)
    with interference.hold(tool, *command, path=ELEVENTH, pass_fds=[writing]) as (process, gate):
        with open(os.dup(reading)) as events:
            while (event := json.loads(events.readline()))["done"] < 10:
                pass
            assert event["event"] == "progress"
            assert (event["share"], event["planned"], event["unit"]) == (0.5, 20, "images")
            assert event["text"].startswith("50% 10/20 ") and event["seconds"] > 0
            gate.open()
            assert finish(process).err == ""


def test_the_last_event_of_a_build_is_its_end(tool, source, tmp_path):
    result, heard = listen(tool, "build", source, tmp_path / "out", *HELD)
    assert result.code == 0
    assert (heard[-1]["share"], heard[-1]["done"]) == (1, COUNT)


@pytest.mark.parametrize(
    "command", [("convert", "out", "new", "--format", "hdf5"), ("verify", "out")], ids=lambda words: words[0]
)
def test_other_commands_are_heard_too(tool, source, tmp_path, command):
    tool.build(source, tmp_path / "out", "--size", "16")
    result, heard = listen(tool, *command, "--quiet", cwd=tmp_path)
    assert result.code == 0
    assert heard[-1]["share"] == 1 and heard[-1]["done"] == heard[-1]["planned"] > 0


def is_error(event, type_name, **details):
    assert event["event"] == "error" and event["type"] == type_name
    assert {name: event.get(name) for name in details} == details
    return True


def test_a_wrong_word_is_heard_of(tool, source, tmp_path):
    for words in ((), ("nosuch",), ("build", source), ("build", source, tmp_path / "out", "--nosuch")):
        result, (error,) = listen(tool, *words)
        assert result.code == 2 and is_error(error, "InvalidArgument")
        assert result.err == f"precache: {error['message']}\n  {error['hint']}\n"


def test_a_wrong_value_is_heard_of(tool, source, tmp_path):
    result, (error,) = listen(tool, "build", source, tmp_path / "out", "--fit", "x")
    assert result.code == 2 and is_error(error, "InvalidArgument", hint="")
    assert error["message"] == "--fit must be one of crop, stretch, pad, got 'x'"


def test_a_refusal_of_the_system_is_heard_of(tool, tmp_path):
    result, heard = listen(tool, "build", "nope", tmp_path / "out")
    assert result.code == 3 and is_error(heard[-1], "IoError", path="nope", errno=2)
    assert result.err.startswith(f"precache: {heard[-1]['message']}\n")


def test_corrupt_data_are_heard_of(tool, source, tmp_path):
    tool.build(source, tmp_path / "out", "--size", "16")
    (tmp_path / "out" / "dataset.json").write_text('{"version": 1,')
    result, heard = listen(tool, "convert", tmp_path / "out", tmp_path / "new")
    assert result.code == 4 and is_error(heard[-1], "CorruptData", path=str(tmp_path / "out" / "dataset.json"))
    assert f"byte {heard[-1]['offset']}" in heard[-1]["message"]


def test_too_many_bad_images_are_heard_of(tool, source, tmp_path):
    images.draw_unique(tmp_path / "source" / "a" / "good.png", 0)
    (tmp_path / "source" / "a" / "bad.png").write_bytes(b"")
    result, heard = listen(tool, "build", tmp_path / "source", tmp_path / "out")
    assert result.code == 1 and is_error(
        heard[-1], "TooManyBadImages", message="too many bad samples: more than 1 % of 2"
    )
    assert "--max-bad" in heard[-1]["hint"] and heard[-1]["hint"] in result.err


# --- those who do not listen ------------------------------------------------------------------------------------------


def test_a_reader_that_goes_away_does_not_end_the_build(tool, interference, source, tmp_path, pipe):
    tool.build(source, tmp_path / "undisturbed", *HELD)
    reading, writing = pipe
    command = ("--events", str(writing), "build", source, tmp_path / "out", *HELD)
    with interference.hold(tool, *command, path=ELEVENTH, pass_fds=[writing]) as (process, gate):
        os.read(reading, 1)
        os.close(reading)
        pipe[0] = None
        time.sleep(0.5)  # for the event that is never read
        gate.open()
        assert finish(process).code == 0
    assert differing(files(tmp_path / "out"), files(tmp_path / "undisturbed")) == []


def test_a_reader_that_does_not_read_does_not_hold_up_the_build(tool, source, tmp_path, pipe):
    _, writing = pipe
    fcntl.fcntl(writing, fcntl.F_SETFL, os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(writing, bytes(4096)):
            pass
    fcntl.fcntl(writing, fcntl.F_SETFL, 0)
    tool.run("--events", str(writing), "build", source, tmp_path / "out", *HELD, pass_fds=[writing])


@pytest.mark.parametrize("descriptor", ["-1", "x", "", "77", "99999999999"])
def test_an_invalid_descriptor_is_refused(tool, source, tmp_path, descriptor):
    result = tool.run("--events", descriptor, "build", source, tmp_path / "out", expect=2)
    assert "--events" in result.err
    assert not (tmp_path / "out").exists()


def test_a_descriptor_for_reading_is_refused(tool, pipe):
    result = tool.run("--events", str(pipe[0]), "verify", "x", expect=2, pass_fds=[pipe[0]])
    assert "is not open for writing" in result.err


# --- the parent -------------------------------------------------------------------------------------------------------


def test_a_tool_whose_parent_has_ended_before_ends(tool, source, tmp_path):
    tool.run("--parent", "1" if os.getpid() != 1 else "2", "build", source, tmp_path / "out", expect=-signal.SIGTERM)
    assert not (tmp_path / "out").exists()


def test_a_tool_with_its_parent_alive_continues(tool, source, tmp_path):
    tool.run("--parent", str(os.getpid()), "build", source, tmp_path / "out", *HELD)


@pytest.mark.parametrize("parent", ["0", "-1", "x", ""])
def test_an_invalid_parent_is_refused(tool, parent):
    assert "--parent" in tool.run("--parent", parent, "verify", "x", expect=2).err
