# SPDX-License-Identifier: Apache-2.0
"""Output fits a terminal: lines are wrapped, or cut where they are redrawn. Logs and pipes keep whole lines."""

import re

import pytest

import images
from terminal import Terminal, read_until
from tool import finish

pytest_plugins = ("tool_fixtures",)

COLUMNS = 80


@pytest.fixture(autouse=True)
def terminal_with_colours(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal") / "source"
    for number in range(6):
        images.draw_unique(folder / "class" / f"{number}.png", number)
    return folder


@pytest.fixture
def out(tool, source, tmp_path):
    """A dataset whose name alone takes most of a line."""
    folder = tmp_path / ("shards-" + "x" * 40)
    tool.build(source, folder, "--size", "16", "--shards", "1")
    return folder


def lines_on_terminal(tool, *words, expect=0, **options):
    with Terminal(COLUMNS) as terminal:
        process = tool.start(*words, stdout=terminal.theirs, stderr=terminal.theirs, **options)
        assert finish(process).code == expect
        return re.sub("\x1b\\[[0-9;]*m", "", terminal.rest()).splitlines()


def assert_wrapped(tool, *words, expect=0, **options):
    """The output fits a terminal, and is the same text that a pipe gets in longer lines."""
    lines = lines_on_terminal(tool, *words, expect=expect, **options)
    assert max(map(len, lines)) <= COLUMNS, lines
    piped = tool.run(*words, expect=expect, **options)
    text = piped.out + piped.err
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    assert max(map(len, text.splitlines())) > COLUMNS
    return lines


def test_damage_fits_a_terminal(tool, out, tmp_path):
    shard = out / "train-000000.tar"
    data = bytearray(shard.read_bytes())
    data[1000] ^= 1
    shard.write_bytes(data)
    lines = assert_wrapped(tool, "verify", out.name, "--quiet", cwd=tmp_path, expect=4)
    assert lines[-1].startswith("damaged   6 samples in 1 file")


def test_indexes_fit_a_terminal(tool, out, tmp_path):
    lines = assert_wrapped(tool, "index", out.name, cwd=tmp_path)
    assert lines[0] == "dali      6 samples in 1 .idx file"
    assert lines[1].startswith("wids      6 samples in")


def test_a_finished_build_fits_a_terminal(tool, source, out, tmp_path):
    words = ("build", source, out.name, "--size", "16", "--shards", "1", "--quiet")
    lines = assert_wrapped(tool, *words, cwd=tmp_path)
    assert lines[0].startswith(f"{out.name}: already complete, nothing to") and lines[1].startswith("  ")


@pytest.fixture
def half(tool, source, tmp_path):
    """The command line of a build of which one part of two is done."""
    words = ("build", source, tmp_path / "half", "--size", "16", "--shards", "6")
    tool.run(*words, "--part", "0/2", "--quiet")
    return (*words, "--status", "--watch", "--watch-seconds", "0.1")


def test_the_watch_line_is_cut_to_the_terminal(tool, half):
    with Terminal(30) as terminal, tool.start(*half, stdout=terminal.theirs) as process:
        lines = read_until(terminal.ours, r"(\r\x1b\[K[^\r]+){2}").split("\r\x1b[K")
        process.kill()
    assert lines[1].startswith("running: 3 of 6") and "\n" not in "".join(lines)
    assert len(lines[1]) == 29  # the last column is for the cursor


def test_the_watch_line_of_a_terminal_without_control_sequences(tool, half, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with Terminal(COLUMNS) as terminal, tool.start(*half, stdout=terminal.theirs) as process:
        text = read_until(terminal.ours, r"(\n[^\n]+){2}")
        process.kill()
    assert "\x1b" not in text and text.splitlines()[0].startswith("running: 3 of 6 shards done (50 %)")
