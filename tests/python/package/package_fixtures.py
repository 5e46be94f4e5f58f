# SPDX-License-Identifier: Apache-2.0
"""Datasets for the tests of the Python package, and child processes for tests that could harm their own process."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from PIL import Image

from conftest import REPOSITORY, TIMEOUT_SECONDS

STAMPS = 23
MODULES = REPOSITORY / "build" / "release" / "tests" / "python" / "package" / "modules"


@pytest.fixture(scope="session")
def made(build, animals, tmp_path_factory):
    """made(options...): a dataset of the animals, built once for each choice of options."""
    known = {}

    def make(*options):
        if options not in known:
            known[options] = build(animals[0], tmp_path_factory.mktemp("made") / "out", *options)
        return known[options]

    return make


@pytest.fixture(scope="session")
def stamps(build, tmp_path_factory):
    """Three shards of small images. The channels of sample `i`, in stored order, are row, column and the number
    `stamps.numbers[i]`."""
    folder = tmp_path_factory.mktemp("stamps")
    y, x = np.mgrid[:12, :10]
    for i in range(STAMPS):
        image = folder / "images" / "abc"[i % 3] / f"{i:02}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.stack([y, x, y * 0 + i], -1).astype(np.uint8)).save(image)
    dataset = build(
        folder / "images", folder / "out", "--size", "12x10", "--shards", "3", "--fit", "stretch", "--no-size-column"
    )
    samples = [sample for shard in dataset.shards() for sample in dataset.read_shard(shard)]
    dataset.numbers = [int(sample.key[-2:]) for sample in samples]
    dataset.images = np.stack([sample.array for sample in samples])
    dataset.labels = np.array([sample.label for sample in samples])
    return dataset


@pytest.fixture
def in_child(tmp_path):
    """in_child(program, arguments..., **environment): the lines that a Python program prints in a child process."""

    def run(program, *arguments, **environment):
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(program))
        words = [sys.executable, path, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, timeout=TIMEOUT_SECONDS, env=os.environ | environment)
        said = done.stderr.decode(errors="replace")
        assert done.returncode == 0, f"exit code {done.returncode}: {said}"
        return done.stdout.decode(errors="surrogateescape").splitlines()

    return run


@pytest.fixture
def package_with(tmp_path, precache):
    """package_with(folder): environment variables that give a child the package with another module."""

    def make(folder):
        (module,) = (MODULES / folder).glob("_reader*.so")
        package = tmp_path / folder / "precache"
        (package / "bin").mkdir(parents=True)
        for entry in (REPOSITORY / "reader" / "python" / "precache").iterdir():  # modules and folders of them
            (package / entry.name).symlink_to(entry)
        (package / module.name).symlink_to(module)
        (package / "bin" / "precache").symlink_to(precache)
        return {"PYTHONPATH": str(package.parent), "PRECACHE_FAKE_GPU": str(module.parent)}

    return make
