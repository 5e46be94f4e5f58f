# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of clusters: a source, the files of a single build."""

import os
from pathlib import Path

import pytest

import images
from engines import WORDS
from tool import files

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def every_cluster_test(request):
    """Skips a test that takes long, unless all are asked for."""
    if not request.config.getoption("--cluster"):
        pytest.skip("runs with --cluster")


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A folder whose name has to be quoted."""
    folder = tmp_path_factory.mktemp("source") / 'it\'s $(a) "folder"'
    for number in range(24):
        images.draw_unique(folder / f"class{number % 2}" / f"{number:02}.png", number)
    return folder


@pytest.fixture(scope="session")
def whole(run, source, tmp_path_factory):
    """The files of a single build."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run("build", source, out, *WORDS, "--quiet")
    return files(out)


@pytest.fixture(scope="session")
def whole_of_sample(run, source, tmp_path_factory):
    """The files of a single build with the options of the samples."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run("build", source, out, "--size", WORDS[1], "--quiet")
    return files(out)


@pytest.fixture(scope="session")
def importable():
    """The environment in which processes of an engine find the modules of these tests."""
    return {**os.environ, "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"}
