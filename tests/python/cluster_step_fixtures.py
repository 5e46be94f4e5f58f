# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of builds in steps: a source with a bad image, the files of a single build, the steps."""

import pytest

import images
from cluster_steps import OPTIONS
from tool import files


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(12):
        images.draw_unique(folder / f"class{number % 3}" / f"{number:02}.png", number)
    (folder / "class0" / "bad.png").write_bytes(b"not an image")
    return folder


@pytest.fixture(scope="module")
def whole(tool, source, tmp_path_factory):
    """The files of a build by one machine."""
    out = tmp_path_factory.mktemp("whole") / "out"
    tool.run("build", source, out, *OPTIONS)
    return files(out)


@pytest.fixture
def step(tool, source, tmp_path):
    """step(options...): runs a step of the build of `source` into tmp_path / "out"."""

    def run(*options, **others):
        return tool.run("build", source, tmp_path / "out", *OPTIONS, *options, **others)

    return run


@pytest.fixture
def status(tool, source, tmp_path):
    def read(*options):
        return tool.run("build", source, tmp_path / "out", "--status", "--json", *options).json()

    return read
