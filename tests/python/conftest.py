# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the tool under test and the test data."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before any import of tensorflow
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

# A shell ignores these signals for background jobs, and the programs under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)

import images  # noqa: E402
from shards import Dataset  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 300  # ends a hanging tool; no test depends on how long a run takes


def pytest_addoption(parser):
    parser.addoption("--all-kills", action="store_true", help="test_kills.py: a kill at every call, for many minutes")
    parser.addoption("--cluster", action="store_true", help="cluster/: all faults on all engines, for some minutes")


@pytest.fixture(scope="session")
def precache():
    """The path of the tool: $PRECACHE, or the release build."""
    tool = Path(os.environ.get("PRECACHE") or REPOSITORY / "build" / "release" / "precache").resolve()
    if not tool.is_file():
        pytest.fail(f"no tool at {tool}: build it (cmake --build --preset release) or set PRECACHE", pytrace=False)
    return tool


@pytest.fixture(scope="session")
def run(precache):
    """run(arguments..., expect=0): runs the tool and checks its exit code."""

    def run_tool(*arguments, expect=0):
        command = [os.fsencode(word) for word in (precache, *arguments)]
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS)
        said = f"\nstdout: {done.stdout.decode(errors='replace')}\nstderr: {done.stderr.decode(errors='replace')}"
        assert done.returncode == expect, f"exit code {done.returncode}, not {expect}, of {command}{said}"
        return done

    return run_tool


@pytest.fixture(scope="session")
def build(run):
    """build(source, out, options...): a finished dataset."""

    def build_dataset(source, out, *options, expect=0):
        run("build", source, out, "--quiet", *options, expect=expect)
        return Dataset(out)

    return build_dataset


@pytest.fixture(scope="session")
def corpora():
    folder = REPOSITORY.parent / "shared" / "corpora"
    if not folder.is_dir():
        pytest.skip(f"corpora not found at {folder}")
    return folder


@pytest.fixture(scope="session")
def animals(tmp_path_factory):
    """A folder of class folders with plain names, and its files by key."""
    source = tmp_path_factory.mktemp("animals")
    return source, images.draw_animals(source)
